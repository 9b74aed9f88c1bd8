"""The words of Spanish."""

from tontaube.text.readings.base import Noun, Reading, nouns, table

SPANISH = Reading(
    number_language="es",
    decimal=",",
    months=tuple(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
        "diciembre".split()
    ),
    date="{day} de {month}",
    dated_year="{date} de {year}",
    hour=Noun("{h}", "{h}", feminine=True),
    minute="{h} y {m}",
    time_suffix=r"(?:\s?(?:horas|hrs?\.?|h)\b)?",
    magnitudes=r"mil(?:es)? (?:de )?millones|mil|millones|millón|billones|billón",
    signs=table(
        """.=coma; -=menos; +=más; eq=igual a; *=por; x=por; /=barra; %=por ciento; ‰=por mil
        &=y; @=arroba; #=almohadilla; No=número; §=sección; to=a; over=entre; ~=unos
        <=menor que; >=mayor que; dot=punto; dash=guion; _=guion bajo; ±=más menos; °=grados
        and=y; ÷=dividido por; \\=barra inversa; of=de; ^=elevado a"""
    ),
    fractions=table(
        "1/2=medio; 1/3=un tercio; 2/3=dos tercios; 1/4=un cuarto; 3/4=tres cuartos; "
        "1/5=un quinto; 1/8=un octavo"
    ),
    currencies=nouns(
        """$=dólar/dólares; €=euro/euros; £=libra*/libras; ¥=yen/yenes
        CHF=franco suizo/francos suizos; ₹=rupia*/rupias; R$=real/reales"""
    ),
    cents=nouns("$=centavo/centavos; €=céntimo/céntimos; £=penique/peniques; R$=centavo/centavos"),
    cents_joint=" con ",
    cents_named=False,
    units=nouns(
        """km=kilómetro/kilómetros; m=metro/metros; cm=centímetro/centímetros
        mm=milímetro/milímetros; kg=kilogramo/kilogramos; g=gramo/gramos; mg=miligramo/miligramos
        t=tonelada*/toneladas; l=litro/litros; L=litro/litros; ml=mililitro/mililitros
        km/h=kilómetro por hora/kilómetros por hora; m/s=metro por segundo/metros por segundo
        °C=grado Celsius/grados Celsius; °F=grado Fahrenheit/grados Fahrenheit; °=grado/grados
        kW=kilovatio/kilovatios; kWh=kilovatio hora/kilovatios hora; W=vatio/vatios
        V=voltio/voltios; Hz=hercio/hercios; kHz=kilohercio/kilohercios
        MHz=megahercio/megahercios; GHz=gigahercio/gigahercios; KB=kilobyte/kilobytes
        MB=megabyte/megabytes; GB=gigabyte/gigabytes; TB=terabyte/terabytes; h=hora*/horas
        min=minuto/minutos; s=segundo/segundos; ms=milisegundo/milisegundos
        m²=metro cuadrado/metros cuadrados; km²=kilómetro cuadrado/kilómetros cuadrados
        m³=metro cúbico/metros cúbicos; ha=hectárea*/hectáreas"""
    ),
    abbreviations=table(
        """Dr.=doctor; Dra.=doctora; Sr.=señor; Sra.=señora; Srta.=señorita; Sres.=señores
        Dña.=doña; Prof.=profesor; p.ej.=por ejemplo; p. ej.=por ejemplo; etc.=etcétera.
        Ud.=usted; Uds.=ustedes; pág.=página; págs.=páginas; aprox.=aproximadamente
        Av.=avenida; Avda.=avenida; C/=calle; tel.=teléfono; EE.UU.=Estados Unidos
        EE. UU.=Estados Unidos; a.C.=antes de Cristo.; d.C.=después de Cristo.; a.m.=a eme
        p.m.=pe eme; art.=artículo; cap.=capítulo; vol.=volumen; Sta.=santa"""
    ),
)
