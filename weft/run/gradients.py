"""Real gradients to reduce: a two-layer perceptron on handwritten digits, with one shard of the images per rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.jobs.digits_mlp import HIDDEN_UNITS, DigitsMlp


def mlp_gradients(ranks: int, seed: int, hidden_units: int = HIDDEN_UNITS) -> list[NDArray[np.float32]]:
    """Return one flat float32 gradient vector per rank (64·H + H + H·10 + 10 elements each).

    Each is the gradient of the mean loss of the rank's shard at the same seeded weights, as in data-parallel training.

    Raises:
        EnvironmentLacksError: scikit-learn, which ships the images, is not installed.
        BadInputError: there are more ranks than images.
    """
    model = DigitsMlp(ranks, seed, hidden_units)
    return [model.gradient(model.initial, rank, 0) for rank in range(ranks)]
