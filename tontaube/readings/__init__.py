"""Language labels → the words with which each language reads numbers, signs, abbreviations."""

from collections.abc import Mapping
from types import MappingProxyType

from tontaube.readings.base import Reading
from tontaube.readings.dutch import DUTCH
from tontaube.readings.english import ENGLISH
from tontaube.readings.french import FRENCH
from tontaube.readings.german import GERMAN
from tontaube.readings.italian import ITALIAN
from tontaube.readings.portuguese import PORTUGUESE
from tontaube.readings.spanish import SPANISH

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
