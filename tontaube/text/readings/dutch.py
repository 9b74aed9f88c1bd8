"""The words of Dutch."""

from tontaube.text.readings.base import Noun, Reading, nouns, table

DUTCH = Reading(
    number_language="nl",
    decimal=",",
    months=tuple(
        "januari februari maart april mei juni juli augustus september oktober november "
        "december".split()
    ),
    date="{day} {month}",
    dated_year="{date} {year}",
    hour=Noun("{h} uur", "{h} uur"),
    minute="{hour} {m}",
    time_suffix=r"(?:\s?(?:uur|u)\b)?",
    magnitudes=r"duizend|miljoen|miljard|mln\.?|mld\.?",
    signs=table(
        """.=komma; -=min; +=plus; eq=is gelijk aan; *=keer; x=bij; /=schuine streep; %=procent
        ‰=promille; &=en; @=apenstaartje; #=hashtag; No=nummer; §=paragraaf; to=tot
        over=gedeeld door; ~=ongeveer; <=kleiner dan; >=groter dan; dot=punt; dash=streepje
        _=laag streepje; ±=plus of min; °=graden; and=en; ÷=gedeeld door; \\=backslash; of=
        ^=tot de macht"""
    ),
    fractions=table(
        "1/2=een half; 1/3=een derde; 2/3=twee derde; 1/4=een kwart; 3/4=drie kwart; "
        "1/5=een vijfde; 1/8=een achtste"
    ),
    currencies=nouns("$=dollar; €=euro; £=pond; ¥=yen; CHF=Zwitserse frank; ₹=roepie; R$=real"),
    cents=nouns("$=cent; €=cent; £=penny/pence"),
    cents_joint=" ",
    cents_named=False,
    units=nouns(
        """km=kilometer; m=meter; cm=centimeter; mm=millimeter; kg=kilogram; g=gram
        mg=milligram; t=ton; l=liter; L=liter; ml=milliliter; km/h=kilometer per uur
        km/u=kilometer per uur; m/s=meter per seconde; °C=graad Celsius/graden Celsius
        °F=graad Fahrenheit/graden Fahrenheit; °=graad/graden; kW=kilowatt; kWh=kilowattuur
        W=watt; V=volt; Hz=hertz; kHz=kilohertz; MHz=megahertz; GHz=gigahertz; KB=kilobyte
        MB=megabyte; GB=gigabyte; TB=terabyte; h=uur; min=minuut/minuten
        s=seconde/seconden; ms=milliseconde/milliseconden; m²=vierkante meter
        km²=vierkante kilometer; m³=kubieke meter; ha=hectare; mln.=miljoen; mld.=miljard"""
    ),
    abbreviations=table(
        """dr.=dokter; Dr.=dokter; dhr.=de heer; Dhr.=de heer; mevr.=mevrouw; Mevr.=mevrouw
        mw.=mevrouw; mr.=meester; prof.=professor; Prof.=professor; drs.=doctorandus
        ir.=ingenieur; bijv.=bijvoorbeeld; bv.=bijvoorbeeld; d.w.z.=dat wil zeggen
        o.a.=onder andere; enz.=enzovoort.; etc.=et cetera.; m.a.w.=met andere woorden
        i.p.v.=in plaats van; t.o.v.=ten opzichte van; a.u.b.=alstublieft; ca.=circa
        blz.=bladzijde; tel.=telefoon; incl.=inclusief; excl.=exclusief
        v.Chr.=voor Christus.; n.Chr.=na Christus.; St.=Sint; max.=maximaal; t/m=tot en met"""
    ),
)
