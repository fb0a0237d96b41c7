"""Scenario keys of the model that is really trained, the perceptron on handwritten digits."""

from __future__ import annotations

from typing import Annotated

from weft.jobs.digits_mlp import HIDDEN_UNITS, IMAGES
from weft.quantities.definitions import number, whole
from weft.scenario.values import Section


class DigitsSection(Section):
    """The two-layer perceptron on scikit-learn's handwritten digits."""

    hidden: Annotated[int, whole(1, 16_384)] = HIDDEN_UNITS
    """Units of the hidden layer, H; the model has 75 · H + 10 parameters."""
    batch: Annotated[int, whole(1, IMAGES)] = 32
    """Images of a worker's gradient, drawn from its shard; at most the shard."""
    learning_rate: Annotated[float, number(0, 1000, above=True, example="0.5")] = 0.5
    """Learning rate for the mean gradient of all workers."""
    target_loss: Annotated[float, number(0, 1000, above=True, example="0.5")] = 0.5
    """Results report when the loss reached this value."""
