"""The words of English."""

from tontaube.text.readings.base import Noun, Reading, nouns, table

ENGLISH = Reading(
    number_language="en",
    decimal=".",
    months=tuple(
        "January February March April May June July August September October November "
        "December".split()
    ),
    date="{month} {day}",
    dated_year="{date}, {year}",
    hour=Noun("{h} o'clock", "{h} o'clock"),
    minute="{h} {m}",
    time_suffix=r"",
    magnitudes=r"thousand|million|billion|trillion",
    signs=table(
        """.=point; -=minus; +=plus; eq=equals; *=times; x=by; /=slash; %=percent; ‰=per mille
        &=and; @=at; #=hashtag; No=number; §=section; to=to; over=over; ~=about; <=less than
        >=greater than; dot=dot; dash=dash; _=underscore; ±=plus or minus; °=degrees; and=and
        ÷=divided by; \\=backslash; of=; ^=to the power of"""
    ),
    fractions=table(
        "1/2=a half; 1/3=a third; 2/3=two thirds; 1/4=a quarter; 3/4=three quarters; "
        "1/5=a fifth; 1/8=an eighth"
    ),
    currencies=nouns(
        """$=dollar/dollars; €=euro/euros; £=pound/pounds; ¥=yen; CHF=Swiss franc/Swiss francs
        ₹=rupee/rupees; R$=real/reais"""
    ),
    cents=nouns("$=cent/cents; €=cent/cents; £=penny/pence; R$=centavo/centavos"),
    cents_joint=" and ",
    cents_named=True,
    units=nouns(
        """km=kilometer/kilometers; m=meter/meters; cm=centimeter/centimeters
        mm=millimeter/millimeters; kg=kilogram/kilograms; g=gram/grams; mg=milligram/milligrams
        t=ton/tons; l=liter/liters; L=liter/liters; ml=milliliter/milliliters
        km/h=kilometer per hour/kilometers per hour; mph=mile per hour/miles per hour
        m/s=meter per second/meters per second; °C=degree Celsius/degrees Celsius
        °F=degree Fahrenheit/degrees Fahrenheit; °=degree/degrees; kW=kilowatt/kilowatts
        kWh=kilowatt hour/kilowatt hours; W=watt/watts; V=volt/volts; Hz=hertz; kHz=kilohertz
        MHz=megahertz; GHz=gigahertz; KB=kilobyte/kilobytes; MB=megabyte/megabytes
        GB=gigabyte/gigabytes; TB=terabyte/terabytes; h=hour/hours; min=minute/minutes
        s=second/seconds; ms=millisecond/milliseconds; m²=square meter/square meters
        km²=square kilometer/square kilometers; m³=cubic meter/cubic meters; ha=hectare/hectares
        mi=mile/miles; ft=foot/feet; lb=pound/pounds; lbs=pound/pounds; oz=ounce/ounces"""
    ),
    abbreviations=table(
        """Dr.=Doctor; Mr.=Mister; Mrs.=Missus; Ms.=Miss; Prof.=Professor; St.=Saint; Jr.=Junior
        Sr.=Senior; vs.=versus; e.g.=for example; i.e.=that is; approx.=approximately
        etc.=et cetera.; Fig.=Figure; Vol.=Volume; Inc.=Incorporated.; Ltd.=Limited.
        Co.=Company.; dept.=department; Gen.=General; Col.=Colonel; Capt.=Captain; Lt.=Lieutenant
        Sgt.=Sergeant; Rev.=Reverend; Mt.=Mount; Ave.=Avenue; Blvd.=Boulevard
        a.k.a.=also known as; w/=with
        w/o=without; a.m.=a m.; p.m.=p m."""
    ),
)
