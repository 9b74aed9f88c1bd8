"""A user's folder of recordings with their texts → coded sentences for fine-tuning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tontaube.bundle import Description
from tontaube.codec.reference import read_reference
from tontaube.errors import InvalidRequest, TontaubeError
from tontaube.text.normalize import normalize
from tontaube.text.segments import sanitize
from tontaube.train.codes import CodedItem
from tontaube.types import Codes, Samples

LIST = "list.tsv"


class DataError(TontaubeError):
    """A folder of recordings that cannot be used; the message names the line at fault."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What holds for every recording whose line does not say otherwise."""

    language: str
    style: str
    speaker: str


def read_list(
    folder: Path, labels: Labels, description: Description
) -> list[tuple[Path, Labels, str]]:
    """``list.tsv``: file, text and, if you like, language, style and speaker, tab-separated.

    Raises DataError naming a line whose file is missing or outside the folder, whose text is empty,
    or whose language or style the bundle does not know.
    """
    path = folder / LIST
    if not path.is_file():
        raise DataError(f"{path}: not found; it lists one recording a line: file<TAB>text")
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        at = f"{path}, line {number}"
        name, text, *rest = [*line.split("\t"), ""][:6]
        given = dict(zip(("language", "style", "speaker"), rest, strict=False))
        label = Labels(
            given.get("language") or labels.language,
            given.get("style") or labels.style,
            given.get("speaker") or labels.speaker,
        )
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise DataError(f"{at}: {name} lies outside the folder")
        if not (folder / name).is_file():
            raise DataError(f"{at}: there is no file {name}")
        if label.language not in description.languages:
            known = ", ".join(description.languages)
            raise DataError(f"{at}: language {label.language!r} is none of {known}")
        if label.style not in description.styles:
            raise DataError(
                f"{at}: style {label.style!r} is none of {', '.join(description.styles)}"
            )
        spoken = sanitize(normalize(text, label.language).text)
        if not spoken:
            raise DataError(f"{at}: there is no text")
        found.append((folder / name, label, spoken))
    if not found:
        raise DataError(f"{path}: lists no recording")
    return found


def code_folder(
    folder: Path, labels: Labels, description: Description, encode: Callable[[Samples], Codes]
) -> list[CodedItem]:
    """Every recording of the folder (1 to 60 s each) as codes. Raises DataError."""
    items = []
    for path, label, text in read_list(folder, labels, description):
        try:
            samples = read_reference(path.read_bytes(), sample_rate=description.sample_rate)
        except InvalidRequest as error:
            raise DataError(f"{path}: {error}") from error
        codes = encode(samples)
        items.append(CodedItem(path.stem, text, label.language, label.style, label.speaker, codes))
    return items
