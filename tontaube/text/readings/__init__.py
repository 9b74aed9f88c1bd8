"""Language labels → the words with which each language reads numbers, signs, abbreviations."""

from collections.abc import Mapping
from types import MappingProxyType

from tontaube.text.readings.base import Reading
from tontaube.text.readings.dutch import DUTCH
from tontaube.text.readings.english import ENGLISH
from tontaube.text.readings.french import FRENCH
from tontaube.text.readings.german import GERMAN
from tontaube.text.readings.italian import ITALIAN
from tontaube.text.readings.portuguese import PORTUGUESE
from tontaube.text.readings.spanish import SPANISH

READINGS: Mapping[str, Reading] = MappingProxyType(
    {
        "english": ENGLISH,
        "german": GERMAN,
        "spanish": SPANISH,
        "french": FRENCH,
        "italian": ITALIAN,
        "dutch": DUTCH,
        "portuguese": PORTUGUESE,
    }
)
