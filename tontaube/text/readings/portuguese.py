"""The words of Portuguese."""

from tontaube.text.readings.base import Noun, Reading, nouns, table

PORTUGUESE = Reading(
    number_language="pt_BR",
    decimal=",",
    months=tuple(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
        "dezembro".split()
    ),
    date="{day} de {month}",
    dated_year="{date} de {year}",
    hour=Noun("{h} hora", "{h} horas", feminine=True),
    minute="{hour} e {m}",
    time_suffix=r"(?:\s?(?:horas?|h)\b)?",
    magnitudes=r"mil milhões|mil|milhões|milhão|bilhões|bilhão|biliões|trilhões",
    signs=table(
        """.=vírgula; -=menos; +=mais; eq=igual a; *=vezes; x=por; /=barra; %=por cento
        ‰=por mil; &=e; @=arroba; #=hashtag; No=número; §=parágrafo; to=a; over=sobre
        ~=cerca de; <=menor que; >=maior que; dot=ponto; dash=hífen; _=sublinhado
        ±=mais ou menos; °=graus; and=e; ÷=dividido por; \\=barra invertida; of=de
        ^=elevado a"""
    ),
    fractions=table(
        "1/2=meio; 1/3=um terço; 2/3=dois terços; 1/4=um quarto; 3/4=três quartos; "
        "1/5=um quinto; 1/8=um oitavo"
    ),
    currencies=nouns(
        """$=dólar/dólares; €=euro/euros; £=libra*/libras; ¥=iene/ienes
        CHF=franco suíço/francos suíços; ₹=rupia*/rupias; R$=real/reais"""
    ),
    cents=nouns("$=centavo/centavos; €=cêntimo/cêntimos; £=pêni/pence; R$=centavo/centavos"),
    cents_joint=" e ",
    cents_named=True,
    units=nouns(
        """km=quilômetro/quilômetros; m=metro/metros; cm=centímetro/centímetros
        mm=milímetro/milímetros; kg=quilograma/quilogramas; g=grama/gramas
        mg=miligrama/miligramas; t=tonelada*/toneladas; l=litro/litros; L=litro/litros
        ml=mililitro/mililitros; km/h=quilômetro por hora/quilômetros por hora
        m/s=metro por segundo/metros por segundo; °C=grau Celsius/graus Celsius
        °F=grau Fahrenheit/graus Fahrenheit; °=grau/graus; kW=quilowatt/quilowatts
        kWh=quilowatt-hora/quilowatts-hora; W=watt/watts; V=volt/volts; Hz=hertz; kHz=quilohertz
        MHz=mega-hertz; GHz=giga-hertz; KB=quilobyte/quilobytes; MB=megabyte/megabytes
        GB=gigabyte/gigabytes; TB=terabyte/terabytes; h=hora*/horas; min=minuto/minutos
        s=segundo/segundos; ms=milissegundo/milissegundos
        m²=metro quadrado/metros quadrados; km²=quilômetro quadrado/quilômetros quadrados
        m³=metro cúbico/metros cúbicos; ha=hectare/hectares"""
    ),
    abbreviations=table(
        """Dr.=doutor; Dra.=doutora; Sr.=senhor; Sra.=senhora; Srta.=senhorita; Prof.=professor
        Profa.=professora; p.ex.=por exemplo; p. ex.=por exemplo; ex.=exemplo; etc.=etcétera.
        pág.=página; págs.=páginas; aprox.=aproximadamente; Av.=avenida
        tel.=telefone; EUA=Estados Unidos; a.C.=antes de Cristo.; d.C.=depois de Cristo.
        art.=artigo; cap.=capítulo; vol.=volume; Sto.=santo; Sta.=santa"""
    ),
)
