"""From a model's name to files: fetched once, used offline, and every failure a sentence."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub.utils import disable_progress_bars
from safetensors.numpy import save_file

from tests.hub_standin import HubStandIn
from tontaube.bundle import OWN, RELEASED, Source, read_description
from tontaube.errors import BundleError
from tontaube.hub import Hub, explain
from tontaube.sources import open_bundle

MODEL = "TontaubeAI/TontaubeV1"
OTHER = "somebody/tuned"
DUALCODEC = "dualcodec_12hz_16384_4096.safetensors"
SHARD = "cb1/model-00002-of-00002.safetensors"


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Files by the names that the released description wants, and some that it does not."""
    disable_progress_bars()
    folder = tmp_path_factory.mktemp("repositories")
    released = read_description(RELEASED)
    repos = {name: source.repo for name, source in released.sources.items()} | {OWN: MODEL}
    for want in released.wants():
        root = folder / repos[want.source]
        for file in (*want.files, *(["model.safetensors"] if want.weights else [])):
            write(root / want.name(file))
    for name in (f"{MODEL}/cb0/pytorch_model.bin", "facebook/w2v-bert-2.0/conformer_shaw.pt"):
        write(folder / name)
    in_shards(folder / MODEL / "cb1", {"model.norm": "00001-of-00002", "x": "00002-of-00002"})
    parts = {"model.acoustic_tokenizer.x": "acoustic", "model.language_model.x": "language"}
    in_shards(folder / "microsoft" / "VibeVoice-1.5B", parts)
    (folder / OTHER).parent.mkdir()
    (folder / OTHER).symlink_to(folder / MODEL, target_is_directory=True)
    (folder / MODEL / "bundle.json").write_bytes(RELEASED.read_bytes())
    revisions = {source.repo: source.revision for source in released.sources.values()}
    return folder, revisions | {MODEL: released.revision, OTHER: "main"}


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".safetensors":
        save_file({str(path): np.arange(2_000)}, path)
    else:
        path.write_text(json.dumps({"path": str(path)}))


def in_shards(folder: Path, places: dict[str, str]) -> None:
    (folder / "model.safetensors").unlink()
    shards = {name: f"model-{place}.safetensors" for name, place in places.items()}
    for shard in shards.values():
        write(folder / shard)
    index = json.dumps({"weight_map": shards})
    (folder / "model.safetensors.index.json").write_text(index)


@pytest.fixture
def server(repositories: tuple[Path, dict[str, str]]) -> Iterator[HubStandIn]:
    with HubStandIn(*repositories) as server:
        yield server


@pytest.fixture
def hub(server: HubStandIn, tmp_path: Path) -> Hub:
    return Hub(endpoint=server.url, cache=tmp_path / "cache")


def test_the_first_run_fetches_what_is_needed_and_the_second_nothing(
    server: HubStandIn, hub: Hub
) -> None:
    bundle = open_bundle(MODEL, hub=hub)
    assert bundle.description.revision == "v1.0.0" and bundle.stage(1).name == "cb1"
    names = [path.split("/", 4)[4] for path in server.fetched()]
    assert len(server.fetched()) == len(set(server.fetched()))
    assert {"cb0/tokenizer.json", SHARD, DUALCODEC} <= set(names)
    assert "w2vbert2_mean_var_stats_emilia.pt" in names and "model-acoustic.safetensors" in names
    assert not [name for name in names if name.endswith((".bin", "shaw.pt"))]
    assert "model-language.safetensors" not in names and "cb1/tokenizer.json" not in names
    server.requests.clear()
    again = open_bundle(f"{MODEL}@v1.0.0", hub=hub)
    assert again.root == bundle.root and not server.requests


def test_a_part_from_elsewhere(server: HubStandIn, hub: Hub, tmp_path: Path) -> None:
    own = server.folder / "facebook" / "w2v-bert-2.0"
    bundle = open_bundle(MODEL, {"w2vbert": str(own)}, hub)
    assert bundle.path("w2vbert:") == own
    assert not [path for path in server.fetched() if "w2v-bert" in path]
    with pytest.raises(BundleError, match=r"parts: cb7 is none of model, voices, dualcodec"):
        open_bundle(MODEL, {"cb7": str(own)}, hub)
    with pytest.raises(BundleError, match=r"config\.json: missing from the bundle"):
        open_bundle(MODEL, {"vibevoice": str(tmp_path)}, hub)


def test_a_download_that_breaks_off_goes_on_where_it_was(tmp_path: Path) -> None:
    content = bytes(16 * 2**20)  # more than what is written to disk at a time
    (tmp_path / "hub" / "some" / "body").mkdir(parents=True)
    (tmp_path / "hub" / "some" / "body" / "large").write_bytes(content)
    source = Source(repo="some/body", revision="main")
    with HubStandIn(tmp_path / "hub", {"some/body": "main"}) as server:
        server.cut["large"] = 1
        hub = Hub(endpoint=server.url, cache=tmp_path / "cache")
        assert hub.file(source, "large").read_bytes() == content
    ranges = [part for method, path, part in server.requests if "/cdn/" in path and method == "GET"]
    assert len(ranges) == 2 and ranges[0] == "" and ranges[1] == f"bytes={10 * 2**20}-"


def test_a_run_that_was_interrupted_fetches_the_rest(server: HubStandIn, hub: Hub) -> None:
    server.forbidden.add("amphion/dualcodec")
    with pytest.raises(BundleError, match="access is refused"):
        open_bundle(MODEL, hub=hub)
    stages = [path for path in server.fetched() if "/cb" in path]
    assert stages
    server.forbidden.clear()
    server.requests.clear()
    open_bundle(MODEL, hub=hub)
    assert not [path for path in server.fetched() if "/cb" in path]


def test_refusals_say_what_to_do(server: HubStandIn, hub: Hub) -> None:
    with pytest.raises(BundleError, match=r"there is no revision v9; .*/tree/main lists them"):
        open_bundle(f"{MODEL}@v9", hub=hub)
    with pytest.raises(BundleError, match="neither a folder here nor a repository"):
        open_bundle("nobody/nothing", hub=hub)
    with pytest.raises(BundleError, match="no such folder"):
        open_bundle("/nowhere/at/all", hub=hub)
    server.gated.add(MODEL)
    with pytest.raises(BundleError, match=r"licence is to be accepted .*hf auth login"):
        open_bundle(MODEL, hub=hub)
    server.gated.clear()
    server.hidden.add("cb2/config.json")
    with pytest.raises(BundleError, match=r"has no file cb2/config\.json"):
        open_bundle(MODEL, hub=hub)


def test_a_damaged_shard_is_fetched_again_once(server: HubStandIn, hub: Hub) -> None:
    server.damaged[SHARD] = 1
    bundle = open_bundle(MODEL, hub=hub)
    assert [path.endswith(SHARD) for path in server.fetched()].count(True) == 2
    kept = bundle.path(SHARD).resolve()
    kept.write_bytes(kept.read_bytes()[:-9])  # the disk lost its end
    server.damaged[SHARD] = 1
    with pytest.raises(BundleError, match=rf"{SHARD} is damaged .* when fetched again"):
        open_bundle(MODEL, hub=hub)
    open_bundle(MODEL, hub=hub)
    assert kept.read_bytes()[-1:] != b""


def test_a_full_disk_is_found_before_and_while_it_fills(server: HubStandIn, tmp_path: Path) -> None:
    hub = Hub(endpoint=server.url, cache=tmp_path, free=lambda _: 1_000)
    with pytest.raises(BundleError, match=r"MB are to be fetched, but .* room for 0\.0 MB"):
        open_bundle(MODEL, hub=hub)
    assert not server.fetched()[1:]  # the index of shards says what is needed
    source = Source(repo=MODEL, revision="v1.0.0")
    sentence = explain(OSError(errno.ENOSPC, "No space left"), source, "https://hub", tmp_path)
    assert "is full; free some, or set HF_HOME" in sentence


def test_without_a_network(repositories: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    with HubStandIn(*repositories) as server:
        hub = Hub(endpoint=server.url, cache=tmp_path)
        bundle = open_bundle(OTHER, hub=hub)
    assert open_bundle(OTHER, hub=hub).root == bundle.root
    with pytest.raises(BundleError, match=r"cannot be reached .*connect once .*TONTAUBE_PARTS"):
        open_bundle(MODEL, hub=Hub(endpoint=server.url, cache=tmp_path / "other"))


def test_the_released_description_is_the_contract() -> None:
    released = read_description(RELEASED)
    assert released.silence.onset == 3716 and len(released.silence.more_codes) == 8
    assert sorted(released.languages.values()) == ["de", "en", "es", "fr", "it", "nl", "pt"]
    assert {source.repo for source in released.sources.values()} == {
        "amphion/dualcodec",
        "facebook/w2v-bert-2.0",
        "microsoft/VibeVoice-1.5B",
    }
    assert {want.folder for want in released.wants() if not want.source} == {
        "cb0", "cb1", "cb2", "cb3"
    }  # fmt: skip
