"""The words of German."""

from tontaube.text.readings.base import Noun, Reading, nouns, table

GERMAN = Reading(
    number_language="de",
    decimal=",",
    months=tuple(
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()
    ),
    date="{day} {month}",
    dated_year="{date} {year}",
    hour=Noun("{h} Uhr", "{h} Uhr"),
    minute="{hour} {m}",
    time_suffix=r"(?:\s?Uhr\b)?",
    magnitudes=r"Tausend|Millionen|Million|Milliarden|Milliarde|Mio\.?|Mrd\.?",
    signs=table(
        """.=Komma; -=minus; +=plus; eq=gleich; *=mal; x=mal; /=Schrägstrich; %=Prozent
        ‰=Promille; &=und; @=ät; #=Hashtag; No=Nummer; §=Paragraf; to=bis; over=durch; ~=etwa
        <=kleiner als; >=größer als; dot=Punkt; dash=Strich; _=Unterstrich; ±=plus minus
        °=Grad; and=und; ÷=geteilt durch; \\=Backslash; of=; ^=hoch"""
    ),
    fractions=table(
        "1/2=ein halb; 1/3=ein Drittel; 2/3=zwei Drittel; 1/4=ein Viertel; 3/4=drei Viertel; "
        "1/5=ein Fünftel; 1/8=ein Achtel"
    ),
    currencies=nouns(
        """$=Dollar; €=Euro; £=Pfund; ¥=Yen; CHF=Franken; ₹=Rupie*/Rupien; R$=Real/Reais"""
    ),
    cents=nouns("$=Cent; €=Cent; £=Penny/Pence; CHF=Rappen; R$=Centavo/Centavos"),
    cents_joint=" ",
    cents_named=False,
    units=nouns(
        """km=Kilometer; m=Meter; cm=Zentimeter; mm=Millimeter; kg=Kilogramm; g=Gramm
        mg=Milligramm; t=Tonne*/Tonnen; l=Liter; L=Liter; ml=Milliliter
        km/h=Kilometer pro Stunde; m/s=Meter pro Sekunde
        mph=Meile pro Stunde*/Meilen pro Stunde
        °C=Grad Celsius; °F=Grad Fahrenheit; °=Grad; kW=Kilowatt
        kWh=Kilowattstunde*/Kilowattstunden
        W=Watt; V=Volt; Hz=Hertz; kHz=Kilohertz; MHz=Megahertz; GHz=Gigahertz; KB=Kilobyte
        MB=Megabyte; GB=Gigabyte; TB=Terabyte; h=Stunde*/Stunden; Std.=Stunde*/Stunden
        min=Minute*/Minuten; Min.=Minute*/Minuten; s=Sekunde*/Sekunden; Sek.=Sekunde*/Sekunden
        ms=Millisekunde*/Millisekunden; m²=Quadratmeter; qm=Quadratmeter; km²=Quadratkilometer
        m³=Kubikmeter; ha=Hektar; Mio.=Million*/Millionen; Mrd.=Milliarde*/Milliarden"""
    ),
    abbreviations=table(
        """Dr.=Doktor; Prof.=Professor; Hr.=Herr; Fr.=Frau; St.=Sankt; Str.=Straße
        z.B.=zum Beispiel; z. B.=zum Beispiel; d.h.=das heißt; d. h.=das heißt
        u.a.=unter anderem; u. a.=unter anderem; usw.=und so weiter.; etc.=et cetera.
        bzw.=beziehungsweise; ca.=circa; vgl.=vergleiche; evtl.=eventuell; ggf.=gegebenenfalls
        inkl.=inklusive; exkl.=exklusive; zzgl.=zuzüglich; Abs.=Absatz; Art.=Artikel; Bd.=Band
        Kap.=Kapitel; Tel.=Telefon; o.ä.=oder ähnliches.; u.U.=unter Umständen
        i.d.R.=in der Regel; v.Chr.=vor Christus.; v. Chr.=vor Christus.; n.Chr.=nach Christus.
        n. Chr.=nach Christus.; sog.=sogenannte; max.=maximal; min.=mindestens; zzt.=zurzeit"""
    ),
)
