"""Training the decoder against discriminators: they learn, they are weighed, runs go on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from tests.test_spectral import TINY
from tests.test_training import write_corpus
from tontaube.codec.build import build_spectral
from tontaube.train import decoder
from tontaube.train.batches import HELD_OUT
from tontaube.train.codec import CodecTraining, Reconstruction
from tontaube.train.codes import extract
from tontaube.train.discriminators import SHARE, Judges
from tontaube.train.teacher import PHONEMES

torch.set_num_threads(1)


def tones_and_noise() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    time = torch.arange(2_400) / 24_000
    tones = torch.stack([0.1 * torch.sin(2 * torch.pi * f * time) for f in (200, 310, 450, 700)])
    return tones, 0.1 * torch.randn((4, 2_400), generator=generator)


def test_they_learn_to_tell_what_is_real() -> None:
    torch.manual_seed(0)
    judges = Judges()
    optimizer = torch.optim.AdamW(judges.parameters(), lr=1e-3)
    real, fake = tones_and_noise()
    losses = [
        judges.judge(fake, real, nn.MSELoss(), optimizer, 1.0).figures["judge"] for _ in range(30)
    ]
    assert np.mean(losses[-9:]) < 0.6 * np.mean(losses[:6])


def test_what_they_say_weighs_as_much_as_the_reconstruction() -> None:
    torch.manual_seed(0)
    judges = Judges()
    optimizer = torch.optim.AdamW(judges.parameters(), lr=0.0)
    real, fake = tones_and_noise()
    alone = judges.judge(fake, real, nn.MSELoss(), optimizer, 0.0).gradient
    aim = fake.clone().requires_grad_()
    nn.MSELoss()(aim, real).backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(alone, aim.grad)
    said = Judges().judge(fake, real, nn.MSELoss(), optimizer, 0.5).gradient - alone
    torch.testing.assert_close(said.norm(), 0.5 * SHARE * alone.norm())
    assert Reconstruction()(real, real).item() < 1e-3 < Reconstruction()(fake, real).item()


def test_a_run_against_them_goes_on_and_keeps_an_average(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", HELD_OUT + 16)
    network = build_spectral(TINY)
    extract(tmp_path / "corpus", network, tmp_path / "codes")
    trained = tmp_path / "decoder"
    trained.mkdir()
    start = CodecTraining(network, TINY.latent, PHONEMES).state_dict()
    torch.save({"model": start}, trained / "checkpoint.pt")
    source = decoder.Polish(tmp_path / "corpus", tmp_path / "codes", trained)
    steps, spent = [], 0.0
    for _ in range(2):
        decoder.adversarial(source, tmp_path / "adversarial", TINY, (spent + 0.01) / 60)
        saved = torch.load(tmp_path / "adversarial" / "checkpoint.pt", weights_only=True)
        steps.append(saved["step"])
        spent = saved["spent"]
    assert 0 < steps[0] < steps[1]
    name = "head.weight"
    average, live = saved["model"][f"codec.dac.decoder.{name}"], saved["decoder"][name]
    before = start[f"codec.dac.decoder.{name}"]
    assert not torch.equal(average, before) and not torch.equal(average, live)
    others = {n for n in start if not n.startswith("codec.dac.decoder.")}
    assert all(torch.equal(saved["model"][n], start[n]) for n in others)  # codes stay
