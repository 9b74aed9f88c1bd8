"""What is read aloud: tables of tricky strings per language, and properties of any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tontaube.bundle import Segmentation
from tontaube.errors import InvalidRequest
from tontaube.text.normalize import READABLE, normalize
from tontaube.text.readings import READINGS
from tontaube.text.segments import split

LANGUAGES = tuple(READINGS)

ENGLISH = {
    # numbers
    "1": "one",
    "Room 101": "Room one hundred and one",
    "1,234,567 people": "one million two hundred and thirty-four thousand five hundred and "
    "sixty-seven people",
    "3.14 and 0.05": "three point one four and zero point zero five",
    "-5 or −7": "minus five or minus seven",
    "agent 007": "agent zero zero seven",
    "12345678901234567890": "one two three four five six seven eight nine zero one two three four "
    "five six seven eight nine zero",
    "1/2, 3/4 and 5/8": "a half, three quarters and five over eight",
    "1½ cups": "one and a half cups",
    "the 1st, 2nd, 23rd and 100th": "the first, second, twenty-third and one hundredth",
    "5-10 people, 5–10%": "five to ten people, five to ten percent",
    "3:2": "three to two",
    "1920x1080": "nineteen twenty by one thousand and eighty",
    "3 * 4 = 12": "three times four equals twelve",
    "version 1.2.3": "version one point two point three",
    # years, dates, times
    "in 1999, 2005 and 2024": "in nineteen ninety-nine, two thousand and five and twenty "
    "twenty-four",
    "1905 to 1900": "nineteen oh five to nineteen hundred",
    "the 1990s and the '80s": "the nineteen nineties and the eighties",
    "2024-05-03": "May third, twenty twenty-four",
    "05/03/2024": "May third, twenty twenty-four",
    "May 3, 2024": "May third, twenty twenty-four",
    "3 May 2024": "May third, twenty twenty-four",
    "Sept. 5th": "September fifth",
    "at 3:45 pm": "at three forty-five p m",
    "at 3 p.m. today": "at three p m today",
    "at 7 PM. Then": "at seven p m. Then",
    "10:05, 14:00": "ten oh five, fourteen o'clock",
    "24/7": "twenty-four seven",
    # money, units
    "$5.99": "five dollars and ninety-nine cents",
    "$1, $0.50, £1.01": "one dollar, fifty cents, one pound and one penny",
    "$1.5 million, $3bn": "one point five million dollars, three billion dollars",
    "5 EUR": "five euros",
    "20°C": "twenty degrees Celsius",
    "5 km/h, 1 km": "five kilometers per hour, one kilometer",
    "100 m² of 5G": "one hundred square meters of five G",
    "25% off": "twenty-five percent off",
    "555-123-4567": "five five five, one two three, four five six seven",
    "+49 30 1234567": "plus four nine, three zero, one two three four five six seven",
    # abbreviations
    "Dr. Smith vs. Mr. Jones": "Doctor Smith versus Mister Jones",
    "e.g. this, i.e. that": "for example this, that is that",
    "apples, etc. Then": "apples, et cetera. Then",
    "apples etc. and": "apples et cetera and",
    "U.S. troops in the U.S.": "U S troops in the U S.",
    "No. 5. No. No!": "number five. No. No!",
    "World War II": "World War two",
    "I am. I live": "I am. I live",
    # markup
    "***Hello*** **bold** *it* _it_ __b__ ~~no~~ `code`": "Hello bold it it b no code",
    "# Title\n\nText": "Title.\n\nText",
    "- one\n- two!\n* three": "one.\ntwo!\nthree.",
    "- [ ] todo\n- [x] done": "todo.\ndone.",
    "1. First\n2) Second": "One. First.\nTwo. Second.",
    "> quoted\n> more": "quoted\nmore",
    "a\n\n---\n\n***\n\nb": "a\n\nb",
    "| a | b |\n|---|:-:|\n| 1 | 2 |": "a, b\n\none, two",
    "See [this](https://x.com/y), ![a cat](c.png).": "See this, a cat.",
    "Before\n```python\nprint(1)\n```\nafter": "Before\n\nafter",
    "```\nonly code\n```": "only code",
    "<b>bold</b> &amp; &lt;br&gt;<br>x": "bold and\n\nx",
    "snake_case main.py": "snake case main dot py",
    # addresses
    "https://www.example.com/a_b?x=1.": "example dot com slash a underscore b.",
    "john.doe@example.com!": "john dot doe at example dot com!",
    "Go to foo.org, now": "Go to foo dot org, now",
    "https://example.com/" + "very-long/" * 9: "example dot com",
    # characters
    "“Curly” ‘quotes’ it’s": "\"Curly\" 'quotes' it's",
    "Wait… what — really?": "Wait... what, really?",
    "— Yes, - no -- maybe": "Yes, no, maybe.",
    "hi😀there 👩‍👧 1️⃣ ✅": "hi there one",
    "R&D, A+B, #1, #fun, @you": "R and D, A plus B, number one, hashtag fun, at you",
    "COVID-19, H2O, B2B": "COVID-nineteen, H two O, B two B",
    "ＡＢＣ ﬁ α 日本 жук": "ABC fi alpha",
    "e\u0301 zero\u200bwidth soft\u00adhyphen": "é zerowidth softhyphen",
    "a\ud800b": "ab",
    "\"Yes.\" \"No.\" 'Oh.' 'ah' dogs' 'n'": "\"Yes.\" \"No.\" 'Oh.' 'ah' dogs' 'n'",
    "wow!!! really??? ok....": "wow! really? ok...",
    "() [] {} <> \"\" ''": "",
}
GERMAN = {
    "Am 3. Mai 2024": "Am dritten Mai zweitausendvierundzwanzig",
    "der 1. Januar": "der erste Januar",
    "03.05.2024": "dritter Mai zweitausendvierundzwanzig",
    "um 14:30 Uhr, 14.05 Uhr, 1:00 Uhr": "um vierzehn Uhr dreißig, vierzehn Uhr fünf, ein Uhr",
    "5,99 €": "fünf Euro neunundneunzig",
    "3,5 Mio. €": "drei Komma fünf Millionen Euro",
    "1.234,5 kg": "eintausendzweihundertvierunddreißig Komma fünf Kilogramm",
    "5–10 m² bei -5 °C": "fünf bis zehn Quadratmeter bei minus fünf Grad Celsius",
    "Der 3. Versuch, im 2. Stock": "Der dritte Versuch, im zweiten Stock",
    "Es war Nummer 3. Dann": "Es war Nummer drei. Dann",
    "1 Jahr, 1 Woche, 21 Tage": "ein Jahr, eine Woche, einundzwanzig Tage",
    "seit 1999": "seit neunzehnhundertneunundneunzig",
    "die 1990er": "die neunzehnhundertneunziger",
    "z. B. das, d.h. dies, bzw. jenes usw.": "zum Beispiel das, das heißt dies, "
    "beziehungsweise jenes und so weiter.",
    "Z.B. Dr. Müller, Nr. 5": "Zum Beispiel Doktor Müller, Nummer fünf",
    "Ludwig XIV. kam": "Ludwig der Vierzehnte kam",
    "§ 5 Abs. 2": "Paragraf fünf Absatz zwei",
    "50 %": "fünfzig Prozent",
    "„Grüße“ & Küsse": '"Grüße" und Küsse',
    "info@beispiel.de": "info ät beispiel Punkt de",
}
SPANISH = {
    "el 3 de mayo de 2024": "el tres de mayo de dos mil veinticuatro",
    "a la 1:00 y a las 14:30": "a la una y a las catorce y treinta",
    "5,99 €": "cinco euros con noventa y nueve",
    "1 casa, 1 libro, 21 libros, uno de": "una casa, un libro, veintiún libros, uno de",
    "1.º, 2ª y 3.er piso": "primero, segunda y tercer piso",
    "1.234.567 personas": "un millón doscientos treinta y cuatro mil quinientos sesenta y siete "
    "personas",
    "21.000 euros": "veintiún mil euros",
    "25 % en el siglo XX": "veinticinco por ciento en el siglo veinte",
    "Sr. García, p. ej., EE. UU.": "señor García, por ejemplo, Estados Unidos",
    "¿Qué? ¡Sí!": "¿Qué? ¡Sí!",
    "3,5 y 1/2": "tres coma cinco y medio",
}
FRENCH = {
    "le 1er mai 2024": "le premier mai deux mille vingt-quatre",
    "à 14h30, à 1h, 21h": "à quatorze heures trente, à une heure, vingt et une heures",
    "5,99 € et 2 millions d'euros": "cinq euros quatre-vingt-dix-neuf et deux millions d'euros",
    "1 234 567 personnes": "un million deux cent trente-quatre mille cinq cent soixante-sept "
    "personnes",
    "1\u202f234 €": "mille deux cent trente-quatre euros",
    "la 1re fois, la 2e, le XXe siècle": "la première fois, la deuxième, le vingtième siècle",
    "M. Dupont, Mme Curie, Dr Martin": "monsieur Dupont, madame Curie, docteur Martin",
    "« Bonjour ! »": '" Bonjour! "',
    "1,5 kg, 80 km/h": "un virgule cinq kilogramme, quatre-vingts kilomètres heure",
    "25 %, n° 5": "vingt-cinq pour cent, numéro cinq",
}
ITALIAN = {
    "il 3 maggio 2024, l'1 maggio": "il tre maggio duemilaventiquattro, l'primo maggio",
    "alle 14:30, all'1:00": "alle quattordici e trenta, all'una",
    "5,99 €, 1 €": "cinque euro e novantanove, un euro",
    "1 casa, 1 libro, 23 libri": "una casa, un libro, ventitré libri",
    "1º, 2ª, il XX secolo, il secolo XX": "primo, seconda, il ventesimo secolo, il secolo venti",
    "il Dott. Rossi, ecc. Poi": "il dottor Rossi, eccetera. Poi",
    "25%, n. 5": "venticinque per cento, numero cinque",
}
DUTCH = {
    "3 mei 2024": "drie mei tweeduizendvierentwintig",
    "31-12-1999": "eenendertig december negentienhonderdnegenennegentig",
    "om 14.30 uur, 9:05": "om veertien uur dertig, negen uur vijf",
    "€ 5,99": "vijf euro negenennegentig",
    "de 1e, 2de en 3e keer": "de eerste, tweede en derde keer",
    "dhr. Jansen, d.w.z. bijv. enz. Dan": "de heer Jansen, dat wil zeggen bijvoorbeeld enzovoort. "
    "Dan",
    "'s avonds in 't huis": "'s avonds in 't huis",
    "25%": "vijfentwintig procent",
}
PORTUGUESE = {
    "1 de maio de 2024": "primeiro de maio de dois mil e vinte e quatro",
    "às 14h30, à 1h, 2h": "às catorze horas e trinta, à uma hora, duas horas",
    "R$ 5,99, R$ 1": "cinco reais e noventa e nove centavos, um real",
    "R$ 3 milhões": "três milhões de reais",
    "2 casas, 2 livros, 21 casas": "duas casas, dois livros, vinte e uma casas",
    "1º e 2ª, século XXI": "primeiro e segunda, século vinte e um",
    "Sr. Silva, p. ex.": "senhor Silva, por exemplo",
    "1.234,56": "mil duzentos e trinta e quatro vírgula cinquenta e seis",
}
TABLES = {
    "english": ENGLISH,
    "german": GERMAN,
    "spanish": SPANISH,
    "french": FRENCH,
    "italian": ITALIAN,
    "dutch": DUTCH,
    "portuguese": PORTUGUESE,
}


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [(language, *row) for language, table in TABLES.items() for row in table.items()],
)
def test_how_it_is_read(language: str, text: str, expected: str) -> None:
    assert normalize(text, language).text == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("english", "3 cats came.", "Three cats came."),
        ("english", "3 cats came", "three cats came"),  # part of a sentence, perhaps
        ("english", "Who? 2 of us! $5 each.", "Who? Two of us! Five dollars each."),
        ("english", '"5 more," she said. (2 left.)', '"Five more," she said. (Two left.)'),
        ("english", "One line\n7 is next.", "One line\nSeven is next."),
        ("english", "small letters stay. so they do.", "small letters stay. so they do."),
        ("english", "It is 3. It was 4.", "It is three. It was four."),
        ("german", "3 Katzen kamen.", "Drei Katzen kamen."),
        ("german", "3. Mai 2024.", "Dritter Mai zweitausendvierundzwanzig."),
        ("spanish", "¿21 libros?", "¿Veintiún libros?"),
        ("french", "80 personnes!", "Quatre-vingts personnes!"),
        ("dutch", "25% is veel.", "Vijfentwintig procent is veel."),
    ],
)
def test_a_number_that_begins_a_sentence_has_a_capital(
    language: str, text: str, expected: str
) -> None:
    assert normalize(text, language).text == expected


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "text", ["", " \n", "?!", "...", "😀😀", "***", "---\n***", "日本", "\u200b"]
)
def test_nothing_to_read(language: str, text: str) -> None:
    assert normalize(text, language).text == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_plain_sentences_stay_as_they_are(language: str) -> None:
    sentences = {
        "english": 'He\'s well-known: "Yes," she said (twice); no!\n\nThen? Nothing...',
        "german": 'Der süße Bär aß größere Äpfel: "Ja!", sagte er; nein?',
        "spanish": "¿Qué pasó? ¡Nada! El niño comió, durmió y soñó.",
        "french": "L'été, où êtes-vous? Ça va; c'est déjà Noël, cœur!",
        "italian": "Perché no? È così: l'amico va all'università.",
        "dutch": "Één keer, zo'n idee: 's morgens geëerd!",
        "portuguese": "Não há razão; você está à mesa, avô?",
    }
    assert normalize(sentences[language], language).text == sentences[language]


def test_an_unknown_language_is_the_requests_fault() -> None:
    with pytest.raises(InvalidRequest, match="english") as raised:
        normalize("text", "klingon")
    assert raised.value.field == "language"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_sign(language: str) -> None:
    english, reading = READINGS["english"], READINGS[language]
    assert reading.signs.keys() == english.signs.keys()
    assert reading.currencies.keys() == english.currencies.keys()
    assert reading.fractions.keys() == english.fractions.keys()
    assert len(reading.months) == 12
    words = [*reading.signs.values(), *reading.fractions.values(), *reading.months]
    words += [noun.one + noun.many for noun in reading.currencies.values()]
    words += [noun.one + noun.many for noun in reading.units.values()]
    assert all(READABLE.fullmatch(word) for word in words)


def test_ranges_lead_back_to_the_request() -> None:
    text = "**Dr. Smith** paid $5.99 😀 on May 3."
    traced = normalize(text, "english")
    for word, written in (("Doctor", "Dr."), ("Smith", "Smith"), ("dollars", "$5.99")):
        at = traced.text.index(word)
        start, end = traced[at : at + len(word)].range()
        assert text[start:end] == written


def test_segments_of_a_normalized_text_have_ranges_in_the_request() -> None:
    text = "It cost 1,234 dollars, i.e. a lot. 😀 Then **she** paid 20%."
    segments = split(normalize(text, "english"), Segmentation(max_characters=60))
    ranges = [text[segment.start : segment.end] for segment in segments]
    assert [segment.text for segment in segments] == [
        "It cost one thousand two hundred and thirty-four dollars,",
        "that is a lot. Then she paid twenty percent.",
    ]
    assert ranges == ["It cost 1,234 dollars,", "i.e. a lot. 😀 Then **she** paid 20%."]


FRAGMENTS = (
    "Dr. z.B. etc. 1 2. 3,5 1.234,5 1,234.5 12:30 14h30 3:45pm 5-10 -5 1/2 24/7 ½ 1990s 2024-05-03 "
    "3.5.2024 05/03/2024 $5.99 5 € R$ 3 20°C 5km/h 50% 1st 2e 3º II XIV. No. #1 #tag @me a@b.de "
    "https://x.com/a www.b.org * ** *** _ __ ` ``` ~~ # ## > - -- — … | |---| [a](b) ![c](d) <b> "
    "&amp; & + = < -> ^ ² { } ( ) [ ] \\ / “ ” ’ « ' \" ! ? . , : ; 😀 👩‍👧 日 ж α "
    "e\u0301 \ud800 \u200b \n \n\n \t May Mai mai de word Wort I U.S. mil million Mio."
).split(" ")
fragments = st.lists(
    st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(["", " ", "\n"])), max_size=12
).map(lambda parts: "".join(fragment + space for fragment, space in parts))
texts = st.one_of(st.text(max_size=60), fragments)


@settings(max_examples=200)
@given(texts, st.sampled_from(LANGUAGES))
def test_any_text_becomes_readable_and_traced(text: str, language: str) -> None:
    traced = normalize(text, language)
    assert READABLE.fullmatch(traced.text)
    assert traced.text == traced.text.strip()
    assert not traced.text or re.search(r"[^\W\d_]", traced.text)
    assert not re.search(r"  | [.,!?;:]|[!?]{3}", traced.text)
    assert len(traced.starts) == len(traced.ends) == len(traced.text)
    assert list(traced.starts) == sorted(traced.starts)
    assert list(traced.ends) == sorted(traced.ends)
    assert all(0 <= s <= e <= len(text) for s, e in zip(traced.starts, traced.ends, strict=True))


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([f for f in FRAGMENTS if f not in ("II", "XIV.")])).map(" ".join),
    st.sampled_from(LANGUAGES),
)
def test_reading_what_is_read_changes_nothing(text: str, language: str) -> None:
    once = normalize(text, language).text
    assert normalize(once, language).text == once


@pytest.mark.parametrize(
    "unit",
    (
        *"1-*_#>|[(<&/.'\"é😀—a ",
        *("A.", "1,", "1.", "1/", "1:", "1-", "1 ", "a@", "a.", "a-", "- ", "# ", "$ ", "1%", "&#"),
        *("http://", "![", "[a](", "```\n", "\n- ", "\n# x", "\n>", "\n|", "e\u0301", "II "),
    ),
)
def test_no_text_takes_long(unit: str) -> None:
    """Anything repeated: a rule of quadratic cost and worse would hang here."""
    normalize((unit * 5_000)[:5_000], "english")
