"""The words of French."""

from tontaube.text.readings.base import Noun, Reading, nouns, table

FRENCH = Reading(
    number_language="fr",
    decimal=",",
    months=tuple(
        "janvier février mars avril mai juin juillet août septembre octobre novembre "
        "décembre".split()
    ),
    date="{day} {month}",
    dated_year="{date} {year}",
    hour=Noun("{h} heure", "{h} heures", feminine=True),
    minute="{hour} {m}",
    time_suffix=r"(?:\s?(?:heures?|h)\b)?",
    magnitudes=r"mille|millions?|milliards?|billions?",
    signs=table(
        """.=virgule; -=moins; +=plus; eq=égale; *=fois; x=sur; /=barre oblique; %=pour cent
        ‰=pour mille; &=et; @=arobase; #=hashtag; No=numéro; §=paragraphe; to=à; over=sur
        ~=environ; <=inférieur à; >=supérieur à; dot=point; dash=tiret; _=tiret bas
        ±=plus ou moins; °=degrés; and=et; ÷=divisé par; \\=barre oblique inverse; of=de
        ^=puissance"""
    ),
    fractions=table(
        "1/2=un demi; 1/3=un tiers; 2/3=deux tiers; 1/4=un quart; 3/4=trois quarts; "
        "1/5=un cinquième; 1/8=un huitième"
    ),
    currencies=nouns(
        """$=dollar/dollars; €=euro/euros; £=livre*/livres; ¥=yen/yens
        CHF=franc suisse/francs suisses; ₹=roupie*/roupies; R$=réal/réaux"""
    ),
    cents=nouns("$=cent/cents; €=centime/centimes; £=penny/pence; CHF=centime/centimes"),
    cents_joint=" ",
    cents_named=False,
    units=nouns(
        """km=kilomètre/kilomètres; m=mètre/mètres; cm=centimètre/centimètres
        mm=millimètre/millimètres; kg=kilogramme/kilogrammes; g=gramme/grammes
        mg=milligramme/milligrammes; t=tonne*/tonnes; l=litre/litres; L=litre/litres
        ml=millilitre/millilitres; km/h=kilomètre heure/kilomètres heure
        m/s=mètre par seconde/mètres par seconde; °C=degré Celsius/degrés Celsius
        °F=degré Fahrenheit/degrés Fahrenheit; °=degré/degrés; kW=kilowatt/kilowatts
        kWh=kilowattheure/kilowattheures; W=watt/watts; V=volt/volts; Hz=hertz; kHz=kilohertz
        MHz=mégahertz; GHz=gigahertz; Ko=kilooctet/kilooctets; Mo=mégaoctet/mégaoctets
        Go=gigaoctet/gigaoctets; To=téraoctet/téraoctets; MB=mégaoctet/mégaoctets
        GB=gigaoctet/gigaoctets; h=heure*/heures; min=minute*/minutes; s=seconde*/secondes
        ms=milliseconde*/millisecondes; m²=mètre carré/mètres carrés
        km²=kilomètre carré/kilomètres carrés; m³=mètre cube/mètres cubes; ha=hectare/hectares"""
    ),
    abbreviations=table(
        """M.=monsieur; MM.=messieurs; Mme=madame; Mmes=mesdames; Mlle=mademoiselle; Dr=docteur
        Dr.=docteur; Pr=professeur; St=saint; Ste=sainte; etc.=et cetera.
        p.ex.=par exemple; p. ex.=par exemple; c.-à-d.=c'est-à-dire; cf.=confer; env.=environ
        av.=avenue; bd=boulevard; tél.=téléphone; vol.=volume; chap.=chapitre; art.=article
        av. J.-C.=avant Jésus-Christ; apr. J.-C.=après Jésus-Christ"""
    ),
)
