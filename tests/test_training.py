"""Training code: sequences are labelled right, steps learn, runs resume."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.test_spectral import TINY
from tests.tiny import tiny_network
from tests.training import TOKENIZER, code_table, config, items, write_codes, write_corpus
from tontaube.codec.build import build_spectral
from tontaube.codec.spectral import BINS
from tontaube.tokens import TextTokenizer, Vocabulary
from tontaube.train import batches, codec, predict, recipe, recode, stages
from tontaube.train.__main__ import COMMANDS, parser
from tontaube.train.codes import extract, load
from tontaube.train.corpus import HOP, read
from tontaube.train.export import SHARPENED_BINS, sharpened
from tontaube.train.progress import Progress, cosine, linear_after
from tontaube.train.rows import IGNORED, RowMaker
from tontaube.train.teacher import PHONEMES


@pytest.mark.parametrize("stage", range(4))
def test_labels_are_the_next_tokens(stage: int) -> None:
    settings = config(stage)
    vocabulary = Vocabulary(settings)
    head = vocabulary.head_ids()
    coded = items()
    maker = RowMaker(settings, TextTokenizer(TOKENIZER), coded, longest=120, seed=stage)
    for item in coded * 4:
        example = maker.example(item)
        assert len(example.ids) == len(example.positions) == len(example.labels)
        ids = [*example.ids, None]
        wanted = [i for i, label in enumerate(example.labels) if label != IGNORED]
        assert wanted == list(range(wanted[0], len(example.ids)))
        assert example.ids[wanted[0]] == vocabulary.pad
        for i in wanted[:-1]:
            assert head[example.labels[i]] == ids[i + 1]
        last = head[example.labels[-1]]
        if stage == 0:
            assert last in (vocabulary.end_of_speech, vocabulary.audio_split)
        else:
            assert example.positions[-1] - example.positions[wanted[0]] == len(wanted) - 1


@pytest.mark.parametrize("stage", range(4))
def test_mistakes_are_codes_of_the_row_that_is_learned(stage: int) -> None:
    vocabulary = Vocabulary(config(stage))
    maker = RowMaker(config(stage), TextTokenizer(TOKENIZER), items(), longest=120, seed=stage)
    batch = stages.collate([maker.example(item) for item in items() * 4])
    torch.manual_seed(stage)
    assert torch.equal(stages.mistaken(batch, vocabulary, 0.0).ids, batch.ids)
    found = stages.mistaken(batch, vocabulary, 0.3)
    assert torch.equal(found.labels, batch.labels)
    assert torch.equal(found.positions, batch.positions)
    changed = found.ids != batch.ids
    assert (batch.labels[changed] != IGNORED).all()  # neither text nor prompt
    for ids in (found.ids, batch.ids):
        assert {vocabulary.code(token)[0] for token in ids[changed].tolist()} == {stage}
    rows = changed.sum(1) / (batch.labels != IGNORED).sum(1)
    assert 0.1 < rows.mean() < 0.2
    assert rows.min() < 0.05 < 0.25 < rows.max()


def test_a_stage_learns_what_it_is_shown() -> None:
    network = tiny_network(config(0))
    maker = RowMaker(config(0), TextTokenizer(TOKENIZER), items(4), longest=0, seed=0)
    batch = stages.collate([maker.example(item) for item in items(4)])
    model = stages.StageTraining(network, compiled=False)
    optimizers = stages.optimizers(network)
    losses = []
    for _ in range(12):
        loss, _ = model(batch)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def learn(model: codec.CodecTraining, step: Callable[[], dict[str, torch.Tensor]]) -> list[float]:
    """Thirty steps; the losses but the commitment, which may grow while codes are found."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    totals = []
    for _ in range(30):
        total = codec.weighted({n: v for n, v in step().items() if n != "vq"})
        optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        totals.append(total.item())
    return totals


def test_c0_learns_phonemes_and_nothing_else_moves(tmp_path: Path) -> None:
    torch.manual_seed(0)
    write_corpus(tmp_path, 12)
    model = codec.CodecTraining(build_spectral(TINY), TINY.latent, PHONEMES)
    acoustic = {n: p.clone() for n, p in model.named_parameters() if ".dac." in n}
    spoken_ = list(read(tmp_path))
    audio, labels = batches.padded(spoken_)
    c0 = batches.c0_of(labels, code_table(spoken_))
    totals = learn(model, lambda: model.read_phonemes(audio, labels, c0))
    assert totals[-1] < 0.99 * totals[0]  # these labels are noise: there is little to learn
    after = dict(model.named_parameters())
    assert acoustic and all(after[n].grad is None for n in acoustic)


def test_the_codec_learns_and_its_codes_are_kept(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", 12)
    network = build_spectral(TINY)
    model = codec.CodecTraining(network, TINY.latent, PHONEMES)
    spoken_ = list(read(tmp_path / "corpus"))
    table = code_table(spoken_)
    batch = batches.make_batch(spoken_, random.Random(0))
    c0 = batches.c0_of(batch.labels, table)
    early = model.semantic_parameters()
    totals = learn(model, lambda: model(batch, c0, depth=3))
    assert totals[-1] < 0.95 * totals[0]
    assert early and all(p.grad is None for p in early)  # C0 is final

    for _ in range(2):  # the second time nothing is left to do
        extract(tmp_path / "corpus", table, network, tmp_path / "codes")
    coded = load(tmp_path / "codes")
    assert [c.id for c in coded] == [f"{i:03d}" for i in range(12)]
    assert all(c.codes.shape == (4, int((1.3 + 0.1 * (i % 3)) * 24_000 + 0.5) // HOP)
               for i, c in enumerate(coded))  # fmt: skip
    for spoken_item, item in zip(spoken_, load(tmp_path / "codes", streams=1), strict=True):
        assert item.codes.tolist() == [table.codes(spoken_item.triples()).tolist()]


def test_matching_weights_are_taken_over(tmp_path: Path) -> None:
    old = codec.CodecTraining(build_spectral(TINY), TINY.latent, PHONEMES)
    torch.save({"model": old.state_dict()}, tmp_path / "checkpoint.pt")
    larger = TINY.model_copy(update={"semantic_codes": 2 * TINY.semantic_codes})
    new = codec.CodecTraining(build_spectral(larger), larger.latent, PHONEMES)
    codebook = new.codec.semantic_vq.stack[0].codebook.weight.clone()
    assert codec.load_matching(new, tmp_path / "checkpoint.pt") == len(old.state_dict()) - 1
    assert torch.equal(new.classifier.weight, old.classifier.weight)
    assert torch.equal(new.codec.semantic_vq.stack[0].codebook.weight, codebook)


@pytest.mark.parametrize("stage", range(4))
def test_a_stage_that_learned_other_codes_says_the_same(stage: int, tmp_path: Path) -> None:
    settings = config(stage)
    old = tiny_network(settings)
    (tmp_path / "old").mkdir()
    torch.save({"average": old.state_dict()}, tmp_path / "old" / "checkpoint.pt")
    coded, turned = items(40), []
    for item in coded:  # the same codes under other numbers
        turned.append(replace(item, codes=item.codes[:, :] ^ 1))
    for name, what in (("before", coded), ("after", turned)):
        write_codes(tmp_path / name, what)
    earlier = recode.Earlier(tmp_path / "old", tmp_path / "before")
    new = tiny_network(settings)
    new.load_state_dict(recode.recoded(earlier, settings, tmp_path / "after"))
    first = settings.audio_token_start_id
    ids = torch.arange(first, first + 60)[None]
    positions = torch.arange(60)[None]
    seen = old.head(old(ids, positions))
    again = new.head(new(first + ((ids - first) ^ 1), positions))
    size = settings.semantic_vocab_size if stage == 0 else settings.acoustic_vocab_size
    order = torch.cat((torch.arange(size) ^ 1, torch.arange(size, seen.shape[-1])))
    assert (again[..., order] - seen).abs().max() < 0.2 * seen.std()


def test_stages_predict_codes_of_each_sentence_by_itself(tmp_path: Path) -> None:
    networks = [tiny_network(config(stage)) for stage in (1, 2, 3)]
    predictor = predict.Predictor(networks, TextTokenizer(TOKENIZER))
    coded = items(2 * predict.TOGETHER)
    write_codes(tmp_path / "codes", coded)
    for _ in range(2):  # the second time nothing is left to do
        predict.predict(tmp_path / "codes", tmp_path / "found", predictor, shards=1)
    found = load(tmp_path / "found")
    assert [item.id for item in found] == sorted(item.id for item in coded)
    for item in found:
        own = coded[int(item.id)]
        assert item.text == own.text and item.codes.shape == own.codes.shape
        np.testing.assert_array_equal(item.codes[0], own.codes[0])
        (alone,) = predictor.predict([own])
        np.testing.assert_array_equal(item.codes, alone)
    assert any((item.codes[1:] != coded[int(item.id)].codes[1:]).any() for item in found)


def test_a_pitch_is_learned_from_the_audios_own_codes_alone(tmp_path: Path) -> None:
    write_corpus(tmp_path, 4)
    model = codec.CodecTraining(build_spectral(TINY), TINY.latent, PHONEMES)
    batch = batches.make_batch(list(read(tmp_path)), random.Random(0))
    codes = torch.zeros(4, 4, batch.labels.shape[1], dtype=torch.int64)
    none, one, all_ = (
        model.polish(batch, codes, torch.tensor(own))["f0"].item()
        for own in ([0.0] * 4, [1.0, 0, 0, 0], [1.0] * 4)
    )
    assert none == 0 < min(one, all_)


def test_a_decoder_learns_to_say_what_is_read_from_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    write_corpus(tmp_path, 4)
    model = codec.CodecTraining(build_spectral(TINY), TINY.latent, PHONEMES)
    batch = batches.make_batch(list(read(tmp_path)), random.Random(0))
    codes = torch.randint(16, (4, 4, batch.labels.shape[1]))
    model.requires_grad_(False)
    decoder = model.codec.dac.decoder.requires_grad_(True)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)
    said = []
    for _ in range(20):
        said.append(model.polish(batch, codes, torch.ones(4))["said"])
        optimizer.zero_grad()
        said[-1].backward()
        optimizer.step()
    assert said[-1] < said[0]


@pytest.mark.parametrize("quick", [False, True])
def test_every_step_of_the_recipe_is_a_command(quick: bool) -> None:
    spent: dict[tuple[str, int | None], float] = {}
    for words in recipe.command_lines("run", "bundle", quick=quick):
        step = parser().parse_args(words)
        assert step.command in COMMANDS and step.run == Path("run")
        if "minutes" in step:
            which = (step.command, getattr(step, "stage", None))
            assert 0 < step.minutes - spent.get(which, 0.0) <= (0.5 if quick else 180)
            spent[which] = step.minutes
    assert step.target == Path("bundle") and step.command == "export"


def test_sharper_magnitudes_keep_their_mean_and_phases_stay() -> None:
    weights = build_spectral(TINY).state_dict()
    sharp = sharpened(weights)
    changed = {name for name in weights if not torch.equal(weights[name], sharp[name])}
    assert changed == {"dac.decoder.head.weight"}  # a bias that is flat stays flat
    head, old = sharp["dac.decoder.head.weight"], weights["dac.decoder.head.weight"]
    torch.testing.assert_close(head[BINS : 2 * BINS], old[BINS : 2 * BINS])
    torch.testing.assert_close(head[3 * BINS :], old[3 * BINS :])
    for first in (0, 2 * BINS):
        before, after = old[first : first + BINS], head[first : first + BINS]
        middle = slice(SHARPENED_BINS, BINS - SHARPENED_BINS)
        assert 1.2 < (after[middle].std(0) / before[middle].std(0)).mean() < 1.3


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    layer = nn.Linear(2, 2)
    progress = Progress(tmp_path, 1.0, {"layer": layer})
    progress.advance()
    progress.save()
    other = nn.Linear(2, 2)
    resumed = Progress(tmp_path, 1.0, {"layer": other})
    assert resumed.step == 1
    assert torch.equal(layer.weight, other.weight)


def test_schedules_fall() -> None:
    assert cosine(0, 1000) == 1 and cosine(1, 1000) < 0.05
    assert linear_after(0.2, 1000) == 1 and linear_after(1, 1000) < 0.05
    assert cosine(0, 0) < 0.05
