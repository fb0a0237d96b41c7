"""A small model that Weft really trains: a two-layer perceptron in NumPy on images of digits.

They are scikit-learn's 1,797 handwritten ones, or others of that size. Each worker has a shard of them. The loss is the
mean cross-entropy. Weights, gradients and losses are bit-identical on every processor
(`weft.quantities.portable_math`).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.errors import BadInputError, EnvironmentLacksError
from weft.hints import install_extra
from weft.quantities import portable_math
from weft.quantities.arrays import Floats

HIDDEN_UNITS = 256
IMAGES = 1797
_PIXELS = 64
_CLASSES = 10

Images = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Images, one row of 64 pixels from 0 to 16 for each, and the digits that they show."""

Weights = NDArray[np.float32]
"""All parameters in one vector: weights and biases of the first layer, then of the second."""


def parameter_count(hidden_units: int) -> int:
    """Return how many parameters the model has: 64·H + H + H·10 + 10."""
    return _PIXELS * hidden_units + hidden_units + hidden_units * _CLASSES + _CLASSES


class DigitsMlp:
    """The model with seeded weights, and the images in seeded order, one shard per worker.

    Args:
        workers: with a shard each.
        seed: of weights, order and batches.
        hidden_units: of the first layer.
        batch: images of a gradient.
        digits: what to train on; by default scikit-learn's images.

    Raises:
        EnvironmentLacksError: scikit-learn, which ships its images, is not installed.
        BadInputError: there are more workers than images.
    """

    def __init__(
        self,
        workers: int,
        seed: int,
        hidden_units: int = HIDDEN_UNITS,
        batch: int = IMAGES,
        digits: Images | None = None,
    ) -> None:
        images, labels = _handwritten() if digits is None else digits
        if workers > len(labels):
            raise BadInputError(f"{len(labels)} images make no shards for {workers} workers")
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(labels))
        self._inputs = (images[order] / 16.0).astype(np.float32)
        self._labels = labels[order]
        first = generator.standard_normal((_PIXELS, hidden_units)) / np.sqrt(_PIXELS)
        second = generator.standard_normal((hidden_units, _CLASSES)) / np.sqrt(hidden_units)
        biases = np.zeros(hidden_units), np.zeros(_CLASSES)
        layers = (first, biases[0], second, biases[1])
        self.initial: Weights = np.concatenate([each.ravel() for each in layers]).astype(np.float32)
        self._hidden_units = hidden_units
        self._seed, self._batch = seed, batch
        self._shards = np.array_split(np.arange(len(labels)), workers)

    def gradient(self, weights: Weights, worker: int, step: int) -> Weights:
        """Return the gradient of the mean loss of a worker's batch in a step.

        Seed, worker and step alone determine which images of the worker's shard are drawn. A shard no larger than a
        batch is used whole.
        """
        images = self._batch_of(worker, step)
        return self._gradient(weights, images, len(images))

    def mean_gradient(self, weights: Weights, step: int) -> Weights:
        """Return the mean of all workers' gradients in a step, computed from all batches at once."""
        batches = [self._batch_of(worker, step) for worker in range(len(self._shards))]
        sizes = np.concatenate([np.full(len(each), len(each), np.float32) for each in batches])
        return self._gradient(weights, np.concatenate(batches), sizes[:, np.newaxis] * len(batches))

    def loss(self, weights: Weights) -> float:
        """Return the mean loss of all images."""
        logits = self._logits(weights)
        logits -= logits.max(axis=1, keepdims=True)
        right = logits[np.arange(len(self._labels)), self._labels]
        return float(np.mean(portable_math.log(portable_math.exp(logits).sum(axis=1)) - right))

    def accuracy(self, weights: Weights) -> float:
        """Return the share of all images that the model classifies correctly."""
        return float(np.mean(self._logits(weights).argmax(axis=1) == self._labels))

    @property
    def layer_parameters(self) -> tuple[int, int]:
        """Return how many parameters the first and the second layer have."""
        first = (_PIXELS + 1) * self._hidden_units
        return first, len(self.initial) - first

    def _batch_of(self, worker: int, step: int) -> NDArray[np.int64]:
        """Return the indices of the images in a worker's batch."""
        shard = self._shards[worker]
        if self._batch < len(shard):
            generator = np.random.default_rng([self._seed, worker, step])
            shard = np.sort(generator.choice(shard, self._batch, replace=False))
        return shard

    def _logits(self, weights: Weights) -> Floats:
        """Return the logits of all images."""
        return self._forward(weights, self._inputs)[1]

    def _layers(self, weights: Weights) -> tuple[Weights, Weights, Weights, Weights]:
        hidden = self._hidden_units
        sizes = (_PIXELS * hidden, hidden, hidden * _CLASSES)
        first, first_bias, second, second_bias = np.split(weights, np.cumsum(sizes))
        return first.reshape(_PIXELS, hidden), first_bias, second.reshape(hidden, _CLASSES), second_bias

    def _forward(self, weights: Weights, images: Weights) -> tuple[Floats, Floats]:
        """Return the hidden activations and logits of images."""
        first, first_bias, second, second_bias = self._layers(weights)
        hidden = np.maximum(portable_math.product(images, first) + first_bias, 0)
        return hidden, portable_math.product(hidden, second) + second_bias

    def _gradient(self, weights: Weights, batch: NDArray[np.int64], divisor: int | Weights) -> Weights:
        """Return the sum of the images' gradients, each divided by `divisor`: one number, or a row for each image."""
        images, labels = self._inputs[batch], self._labels[batch]
        hidden, logits = self._forward(weights, images)
        probabilities = portable_math.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        error = probabilities
        error[np.arange(len(labels)), labels] -= 1
        error /= divisor
        hidden_error = portable_math.product(error, self._layers(weights)[2].T) * (hidden > 0)
        of_first = portable_math.product(images.T, hidden_error)
        of_second = portable_math.product(hidden.T, error)
        parts = [of_first, hidden_error.sum(axis=0), of_second, error.sum(axis=0)]
        return np.concatenate([part.ravel() for part in parts]).astype(np.float32)


def _handwritten() -> Images:
    """Return scikit-learn's images, 64 pixels a row, and their labels.

    Read directly from the file that `load_digits` reads: importing scikit-learn takes longer than most runs.
    """
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise EnvironmentLacksError(
            f"scikit-learn, the source of the digits to train on, is missing: {install_extra('demo')}"
        )
    file = Path(found.origin).with_name("datasets") / "data" / "digits.csv.gz"
    try:
        rows = np.loadtxt(file, delimiter=",")
    except OSError as error:
        raise EnvironmentLacksError(f"scikit-learn's digits cannot be read: {error}") from None
    return rows[:, :-1], rows[:, -1].astype(np.int64)
