"""What every test shares: one thread for torch, as the machine that runs them is small."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
