import hashlib

import numpy as np
import pytest

from weft.jobs.digits_mlp import DigitsMlp
from weft.jobs.drawn_digits import GREYS, IMAGES, drawn_digits


def test_images_are_of_all_digits_alike_in_17_greys():
    images, labels = drawn_digits()
    assert images.shape == (IMAGES, 64)
    assert set(np.unique(images)) == set(range(GREYS + 1))
    assert np.bincount(labels).tolist() == [IMAGES // 10] * 10
    assert len(np.unique(images, axis=0)) == IMAGES
    with pytest.raises(ValueError, match="read-only"):
        images[0, 0] = 1


def test_images_are_the_same_everywhere():
    images, labels = drawn_digits()
    drawn = hashlib.sha256(images.astype(np.uint8).tobytes() + labels.astype(np.uint8).tobytes()).hexdigest()
    assert drawn == "8a406abe75359aba335a8f5eb720cbedc2bb986fa8f686bc74c8e77d0e4242ff"


def test_a_perceptron_learns_them_in_some_steps_and_not_at_once():
    model = DigitsMlp(1, seed=1, hidden_units=32, batch=128, digits=drawn_digits())
    weights, losses = model.initial, [model.loss(model.initial)]
    for step in range(40):
        weights = (weights - np.float32(0.5) * model.gradient(weights, 0, step)).astype(np.float32)
        losses.append(model.loss(weights))
    assert losses[0] > 2
    assert losses[5] > 0.9
    assert losses[-1] < 0.5
    assert model.accuracy(weights) > 0.85
