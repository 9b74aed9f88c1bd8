"""Wanted files of a pinned hub repository → the folder that holds them, fetched once into
huggingface_hub's cache. Every failure is a sentence that says what to do. It knows no bundle.
"""

from __future__ import annotations

import errno
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from safetensors import SafetensorError, safe_open

from tontaube.bundle import Source, Want
from tontaube.errors import BundleError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fetch:
    """What is to be fetched of a repository: file → bytes."""

    sizes: Mapping[str, int]

    @property
    def total(self) -> int:
        """Bytes."""
        return sum(self.sizes.values())


def free_bytes(folder: Path) -> int:
    """Room on the disk that holds ``folder``, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True)
class Hub:
    """Files of hub repositories; those that are kept are used without asking the hub again."""

    endpoint: str = field(default_factory=lambda: constants.ENDPOINT)
    cache: Path = field(default_factory=lambda: Path(constants.HF_HUB_CACHE))
    free: Callable[[Path], int] = free_bytes

    def folder(self, source: Source, wants: tuple[Want, ...]) -> Path:
        """The folder that holds all that is wanted of ``source``, fetched where it is not kept.

        Raises BundleError saying what to do.
        """
        names = self.kept(source, wants)
        if names is None:
            names, fetch = self.missing(source, wants)
            room = self.free(self.cache)
            if fetch.total > room:
                raise BundleError(
                    f"{source.repo}: {size(fetch.total)} are to be fetched, but {self.cache} has"
                    f" room for {size(room)}; free some, or set HF_HOME to a larger disk"
                )
            for name in names:
                self._file(source, name)
        for name in names:
            self._mend(source, name)
        first = self._cached(source, names[0])
        assert first is not None
        return first.parents[names[0].count("/")]

    def kept(self, source: Source, wants: tuple[Want, ...]) -> list[str] | None:
        """The wanted files' names if all are in the cache, else None. The hub is not asked."""

        def read(name: str) -> Path:
            path = self._cached(source, name)
            assert path is not None  # it was there when its name was asked for
            return path

        def there(name: str) -> bool:
            return self._cached(source, name) is not None

        names = list(needed(wants, there, read))
        return names if all(map(there, names)) else None

    def missing(self, source: Source, wants: tuple[Want, ...]) -> tuple[list[str], Fetch]:
        """The wanted files' names, and what is to be fetched. Asks the hub; an index of shards is
        fetched to know them. Raises BundleError."""
        listing = self._listing(source)
        names = list(needed(wants, listing.__contains__, lambda name: self._file(source, name)))
        absent = [name for name in names if name not in listing]
        if absent:
            raise BundleError(
                f"{source.repo}@{source.revision} has no file {', '.join(absent)};"
                " is it a model of this kind, and the right revision?"
            )
        left = [name for name in names if self._cached(source, name) is None]
        return names, Fetch({name: listing[name] for name in left})

    def file(self, source: Source, name: str) -> Path:
        """One file. Raises BundleError."""
        return self._cached(source, name) or self._file(source, name)

    def _cached(self, source: Source, name: str) -> Path | None:
        found = try_to_load_from_cache(
            source.repo, name, cache_dir=self.cache, revision=source.revision
        )
        return Path(found) if isinstance(found, str) else None

    def _listing(self, source: Source) -> dict[str, int]:
        """File → bytes, of everything in the repository."""
        if constants.HF_HUB_OFFLINE:
            raise BundleError(
                f"{source.repo}@{source.revision} is not here in full, and HF_HUB_OFFLINE forbids"
                " to fetch it"
            )
        try:
            info = HfApi(endpoint=self.endpoint).model_info(
                source.repo, revision=source.revision, files_metadata=True
            )
        except Exception as error:  # httpx's errors: which httpx, huggingface_hub decides
            raise self._explained(error, source) from error
        return {file.rfilename: file.size or 0 for file in info.siblings or ()}

    def _file(self, source: Source, name: str, *, again: bool = False) -> Path:
        try:
            return Path(
                hf_hub_download(
                    source.repo,
                    name,
                    revision=source.revision,
                    endpoint=self.endpoint,
                    cache_dir=self.cache,
                    force_download=again,
                )
            )
        except Exception as error:  # as above
            raise self._explained(error, source, name) from error

    def _mend(self, source: Source, name: str) -> None:
        """Fetch a damaged file once more: a disk or a proxy may be at fault. Raises BundleError."""
        path = self._cached(source, name)
        if path is None or not name.endswith(".safetensors") or damage(path) is None:
            return
        log.warning("%s: damaged (%s); fetching it again", path, damage(path))
        self._file(source, name, again=True)
        found = damage(self._cached(source, name) or path)
        if found is not None:
            raise BundleError(
                f"{source.repo}@{source.revision}: {name} is damaged ({found}), and was so when"
                " fetched again; try another revision or tell its owner"
            )

    def _explained(self, error: Exception, source: Source, name: str = "") -> BundleError:
        what = f"{source.repo}@{source.revision}" + (f": {name}" if name else "")
        return BundleError(f"{what}: {explain(error, source, self.endpoint, self.cache)}")


def explain(error: Exception, source: Source, endpoint: str, cache: Path) -> str:
    """What went wrong with a repository, and what to do."""
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # why the hub could not be asked
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    page = f"{endpoint}/{source.repo}"
    match error:
        case GatedRepoError():
            return f"its licence is to be accepted first at {page}; then log in: hf auth login"
        case RevisionNotFoundError():
            return f"there is no revision {source.revision}; {page}/tree/main lists them"
        case RemoteEntryNotFoundError():
            return "there is no such file in this revision"
        case RepositoryNotFoundError():
            where = f"neither a folder here nor a repository at {endpoint} that may be read"
            return f"{where}; check its name, or log in: hf auth login"
        case HFValidationError():
            return "not the id of a repository; write owner/name or owner/name@revision"
        case HfHubHTTPError() if status in (401, 403):
            return "access is refused; log in with a token that may read it: hf auth login"
        case HfHubHTTPError():
            return f"{endpoint} answered with status {status}; try again later"
        case FileMetadataError():
            return f"{endpoint} does not answer as a model hub does; check HF_ENDPOINT and proxies"
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return f"the disk of {cache} is full; free some, or set HF_HOME to a larger one"
        case PermissionError():
            return f"{cache} cannot be written; set HF_HOME to a folder that can"
        case OSError() if "Consistency check" in str(error):
            return "it arrived incomplete; start again to fetch what is missing"
        case _:
            why = f"{endpoint} cannot be reached ({type(error).__name__}: {str(error)[:200]})"
            names = "TONTAUBE_MODEL and TONTAUBE_PARTS"
            return f"{why}; connect once to fetch it, or name local folders in {names}"


def needed(
    wants: tuple[Want, ...], there: Callable[[str], bool], read: Callable[[str], Path]
) -> Iterator[str]:
    """The names of all wanted files, in a source of which ``there`` tells whether it has a file and
    ``read`` gives one. An index of shards decides which of them are wanted."""
    for want in wants:
        yield from map(want.name, want.files)
        if not want.weights:
            continue
        whole, index = want.name("model.safetensors"), want.name("model.safetensors.index.json")
        if there(whole) or not there(index):
            yield whole
            continue
        yield index
        yield from map(want.name, _shards(read(index), want.tensors))


def _shards(index: Path, tensors: str) -> list[str]:
    try:
        places: dict[str, str] = json.loads(index.read_text("utf-8"))["weight_map"]
        chosen = {shard for name, shard in places.items() if name.startswith(tensors)}
        return sorted(chosen or set(places.values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{index}: not an index of shards ({error!r})") from error


def damage(file: Path) -> str | None:
    """What is wrong with a safetensors file's header or length, None if nothing."""
    try:
        with safe_open(file, framework="np"):
            return None
    except (SafetensorError, OSError) as error:
        return str(error)


def size(count: int) -> str:
    """Bytes, for people."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
