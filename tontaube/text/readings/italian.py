"""The words of Italian."""

from tontaube.text.readings.base import Noun, Reading, nouns, table

ITALIAN = Reading(
    number_language="it",
    decimal=",",
    months=tuple(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre".split()
    ),
    date="{day} {month}",
    dated_year="{date} {year}",
    hour=Noun("{h}", "{h}", feminine=True),
    minute="{h} e {m}",
    time_suffix=r"(?:\s?h\b)?",
    magnitudes=r"mila|milioni|milione|miliardi|miliardo",
    signs=table(
        """.=virgola; -=meno; +=più; eq=uguale a; *=per; x=per; /=barra; %=per cento
        ‰=per mille; &=e; @=chiocciola; #=hashtag; No=numero; §=paragrafo; to=a; over=su; ~=circa
        <=minore di; >=maggiore di; dot=punto; dash=trattino; _=trattino basso; ±=più o meno
        °=gradi; and=e; ÷=diviso; \\=barra inversa; of=di; ^=elevato a"""
    ),
    fractions=table(
        "1/2=un mezzo; 1/3=un terzo; 2/3=due terzi; 1/4=un quarto; 3/4=tre quarti; "
        "1/5=un quinto; 1/8=un ottavo"
    ),
    currencies=nouns(
        """$=dollaro/dollari; €=euro; £=sterlina*/sterline; ¥=yen
        CHF=franco svizzero/franchi svizzeri; ₹=rupia*/rupie; R$=real/reais"""
    ),
    cents=nouns("$=centesimo/centesimi; €=centesimo/centesimi; £=penny/pence"),
    cents_joint=" e ",
    cents_named=False,
    units=nouns(
        """km=chilometro/chilometri; m=metro/metri; cm=centimetro/centimetri
        mm=millimetro/millimetri; kg=chilogrammo/chilogrammi; g=grammo/grammi
        mg=milligrammo/milligrammi; t=tonnellata*/tonnellate; l=litro/litri; L=litro/litri
        ml=millilitro/millilitri; km/h=chilometro orario/chilometri orari
        m/s=metro al secondo/metri al secondo; °C=grado Celsius/gradi Celsius
        °F=grado Fahrenheit/gradi Fahrenheit; °=grado/gradi; kW=chilowatt; kWh=chilowattora
        W=watt; V=volt; Hz=hertz; kHz=chilohertz; MHz=megahertz; GHz=gigahertz; KB=kilobyte
        MB=megabyte; GB=gigabyte; TB=terabyte; h=ora*/ore; min=minuto/minuti
        s=secondo/secondi; ms=millisecondo/millisecondi; m²=metro quadrato/metri quadrati
        mq=metro quadrato/metri quadrati; km²=chilometro quadrato/chilometri quadrati
        m³=metro cubo/metri cubi; ha=ettaro/ettari"""
    ),
    abbreviations=table(
        """Dott.=dottor; Dr.=dottor; Dott.ssa=dottoressa; Sig.=signor; Sig.ra=signora
        Sig.na=signorina; Prof.=professor; Prof.ssa=professoressa; Ing.=ingegner; Avv.=avvocato
        ecc.=eccetera.; es.=esempio; p.es.=per esempio; p. es.=per esempio; ad es.=ad esempio
        pag.=pagina; tel.=telefono; a.C.=avanti Cristo.; d.C.=dopo Cristo.
        cap.=capitolo; art.=articolo; vol.=volume; ca.=circa"""
    ),
)
