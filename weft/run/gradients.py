"""Real gradients to reduce: a two-layer perceptron in NumPy on scikit-learn's handwritten digits.

Each rank takes one shard of the 1,797 images and computes the gradients of its mean cross-entropy loss at the
same seeded weights, as data-parallel training does.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.errors import BadInputError, EnvironmentLacksError

HIDDEN_UNITS = 256


def mlp_gradients(ranks: int, seed: int, hidden_units: int = HIDDEN_UNITS) -> list[NDArray[np.float32]]:
    """Return one flat float32 gradient vector per rank (64·H + H + H·10 + 10 elements each).

    Raises:
        EnvironmentLacksError: scikit-learn, which carries the data, is not installed.
        BadInputError: there are more ranks than images.
    """
    images, labels = _digits()
    if ranks > len(labels):
        raise BadInputError(f"{len(labels)} images make no shards for {ranks} ranks")
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    inputs = (images[order] / 16.0).astype(np.float32)
    labels = labels[order]
    weights = [
        (generator.standard_normal((images.shape[1], hidden_units)) / np.sqrt(images.shape[1])).astype(
            np.float32
        ),
        np.zeros(hidden_units, np.float32),
        (generator.standard_normal((hidden_units, 10)) / np.sqrt(hidden_units)).astype(np.float32),
        np.zeros(10, np.float32),
    ]
    shards = zip(np.array_split(inputs, ranks), np.array_split(labels, ranks), strict=True)
    return [_gradients(weights, shard_images, shard_labels) for shard_images, shard_labels in shards]


def _digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return scikit-learn's images, 64 pixels a row, and what they show.

    They are read from the file that its `load_digits` reads. To import scikit-learn takes longer than most runs.
    """
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise EnvironmentLacksError(
            "scikit-learn is missing, and mlp-gradients come from its digits: pip install scikit-learn"
        )
    file = Path(found.origin).with_name("datasets") / "data" / "digits.csv.gz"
    try:
        rows = np.loadtxt(file, delimiter=",")
    except OSError as error:
        raise EnvironmentLacksError(f"scikit-learn's digits cannot be read: {error}") from None
    return rows[:, :-1], rows[:, -1].astype(np.int64)


def _gradients(
    weights: list[NDArray[np.float32]], images: NDArray[np.float32], labels: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the gradients of the mean cross-entropy, flattened in the weights' order."""
    first, first_bias, second, second_bias = weights
    hidden = np.maximum(images @ first + first_bias, 0)
    logits = hidden @ second + second_bias
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    error = probabilities
    error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)
    hidden_error = (error @ second.T) * (hidden > 0)
    parts = [images.T @ hidden_error, hidden_error.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
    return np.concatenate([part.ravel() for part in parts]).astype(np.float32)
