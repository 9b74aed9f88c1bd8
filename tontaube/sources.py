"""A model's name → an opened bundle: a folder as it is, or a hub id, whose description says which
files of which repositories make it up. Both may be mixed, source by source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tontaube.bundle import OWN, RELEASED, Bundle, Description, Source, Want, read_description
from tontaube.errors import BundleError
from tontaube.hub import Hub, needed
from tontaube.recordings import voices_of

_HUB_ID = re.compile(r"(?P<repo>[\w-][\w.-]*/[\w-][\w.-]*)(@(?P<revision>[\w./-]+))?")
MODEL = "model"  # among the parts: the bundle's own folder
VOICES = "voices"  # among the parts: a folder of recordings


@dataclass(frozen=True, slots=True)
class Part:
    """Where one source of a bundle comes from, and what is needed of it."""

    name: str
    place: Path | Source
    wants: tuple[Want, ...]


def survey(
    model: str, parts: Mapping[str, str], hub: Hub
) -> tuple[Description, tuple[Part, ...], Path | None]:
    """The description of ``model``, where its sources come from, and its folder of recordings.

    Fetches at most a description. ``parts`` replaces sources (see ``open_bundle``).
    """
    place, description = _described(model, hub)
    known = (MODEL, VOICES, *description.sources)
    for name in parts:
        if name not in known:
            raise BundleError(f"parts: {name} is none of {', '.join(known)}")
    places = {OWN: place, **description.sources}
    for name, value in parts.items():
        if name != VOICES:
            places[OWN if name == MODEL else name] = _place(value)
    wants = description.wants()
    wanted = {name: tuple(want for want in wants if want.source == name) for name in places}
    found = tuple(
        Part(name or MODEL, place, wanted[name])
        for name, place in places.items()
        if name == OWN or wanted[name]
    )
    return description, found, _folder(parts[VOICES]) if VOICES in parts else None


def open_bundle(
    model: str, parts: Mapping[str, str] | None = None, hub: Hub | None = None
) -> Bundle:
    """A bundle by the path of its folder or by its hub id, ``owner/name[@revision]``.

    ``parts`` takes a source from elsewhere: its name in the description, or "model" for the
    bundle's own files, → a folder or hub id. "voices" is a folder of recordings with a manifest.
    Raises BundleError.
    """
    hub = hub or Hub()
    description, found, voices = survey(model, parts or {}, hub)
    folders = {part.name: open_part(part, hub) for part in found}
    root = folders.pop(MODEL)
    if voices is not None:
        more = voices_of(voices, description, VOICES)
        description = description.model_copy(update={"voices": (*description.voices, *more)})
        folders[VOICES] = voices
    return Bundle(root, description, folders)


def open_part(part: Part, hub: Hub) -> Path:
    """The folder of a source, with everything in it that is wanted. Raises BundleError."""
    if isinstance(part.place, Source):
        return hub.folder(part.place, part.wants)
    folder = part.place
    for name in needed(part.wants, lambda name: (folder / name).is_file(), folder.joinpath):
        if not (folder / name).is_file():
            raise BundleError(f"{folder / name}: missing from the bundle")
    return folder


def _described(model: str, hub: Hub) -> tuple[Path | Source, Description]:
    place = _place(model)
    if isinstance(place, Path):
        return place, read_description(place / "bundle.json")
    released = read_description(RELEASED)
    if place.repo != released.id:
        return place, read_description(hub.file(place, "bundle.json"))
    if "@" not in model:
        place = place.model_copy(update={"revision": released.revision})
    return place, released.model_copy(update={"revision": place.revision})


def _place(value: str) -> Path | Source:
    found = _HUB_ID.fullmatch(value)
    if found is None or Path(value).expanduser().is_dir():
        return _folder(value)
    return Source(repo=found["repo"], revision=found["revision"] or "main")


def _folder(value: str) -> Path:
    path = Path(value).expanduser()
    if not path.is_dir():
        raise BundleError(
            f"{value}: no such folder; give the path of a model bundle, or owner/name[@revision]"
        )
    return path.resolve()
