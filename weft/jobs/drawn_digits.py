"""Images of digits to train on, drawn from strokes: small, seeded, and the same on every machine.

A digit is a line through a few points. Each image shifts, slants, scales and jitters the points and draws the line with
a pen of its own width, on 8 by 8 pixels of 17 greys. How much was chosen so that the perceptron of
`weft.jobs.digits_mlp` learns them about as fast as it learns scikit-learn's handwritten digits, which have that size.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

IMAGES = 1800
GREYS = 16
"""The darkest grey; 0 is paper."""
_SIDE_PIXELS = 8
_CLASSES = 10

_SEED = 1
_WIDTHS, _HEIGHTS, _SLANTS = (0.7, 1.15), (0.8, 1.15), (-0.25, 0.25)
_SHIFTS_PIXELS, _JITTERS_PIXELS, _PENS_PIXELS = (-0.42, 0.42), (-0.35, 0.35), (0.3, 0.8)
# Points on a square of 8 by 8, x to the right and y down; a line joins each with the next.
_STROKES = (
    ((4, 1), (2, 2.5), (2, 5.5), (4, 7), (6, 5.5), (6, 2.5), (4, 1)),
    ((2.5, 2.5), (4.3, 1), (4.3, 7)),
    ((2, 2.5), (3.2, 1), (5, 1), (6, 2.5), (2, 7), (6, 7)),
    ((2, 1), (6, 1), (3.8, 3.6), (6, 5), (5, 7), (3, 7), (2, 6.2)),
    ((5, 7), (5, 1), (2, 5), (6.4, 5)),
    ((6, 1), (2.6, 1), (2.3, 3.6), (5, 3.4), (6, 5), (5, 7), (2, 6.8)),
    ((5.5, 1), (3, 2.8), (2, 5.2), (3, 7), (5, 7), (6, 5.5), (4.8, 4), (2.2, 4.8)),
    ((2, 1), (6, 1), (3.4, 7)),
    ((4, 4), (2.4, 2.5), (4, 1), (5.6, 2.5), (4, 4), (2, 5.5), (4, 7), (6, 5.5), (4, 4)),
    ((5.8, 3.2), (3.2, 4), (2, 2.5), (3, 1), (5, 1), (6, 2.8), (5, 5.2), (2.5, 7)),
)


@cache
def drawn_digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return `IMAGES` images and their labels.

    Returns:
        One row of 64 pixels for each image, from 0 to `GREYS`, line by line from the top; and the digit that each
        shows. There are as many images of each digit. The arrays are read-only.
    """
    generator = np.random.default_rng(_SEED)
    labels = np.arange(IMAGES) % _CLASSES
    images = np.empty((IMAGES, _SIDE_PIXELS * _SIDE_PIXELS))
    for digit, stroke in enumerate(_STROKES):
        images[labels == digit] = _drawn(np.array(stroke), IMAGES // _CLASSES, generator)
    images.setflags(write=False)
    labels.setflags(write=False)
    return images, labels


def _drawn(stroke: NDArray[np.float64], count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return images of one digit, one a row.

    Uses only operations that IEEE 754 defines to the last bit: no library's sums, sines and products of matrices.
    """

    def drawn(limits: tuple[float, float], numbers: int) -> NDArray[np.float64]:
        return generator.uniform(*limits, (count, numbers))

    x, y = stroke[:, 0] - 4.0, stroke[:, 1] - 4.0
    slanted = x * drawn(_WIDTHS, 1) + y * drawn(_SLANTS, 1)
    x = slanted + drawn(_SHIFTS_PIXELS, 1) + drawn(_JITTERS_PIXELS, len(stroke)) + 4.0
    y = y * drawn(_HEIGHTS, 1) + drawn(_SHIFTS_PIXELS, 1) + drawn(_JITTERS_PIXELS, len(stroke)) + 4.0
    pen = drawn(_PENS_PIXELS, 1)
    centres = np.arange(_SIDE_PIXELS) + 0.5
    pixel_x, pixel_y = np.tile(centres, _SIDE_PIXELS), np.repeat(centres, _SIDE_PIXELS)
    nearest = np.full((count, _SIDE_PIXELS * _SIDE_PIXELS), np.inf)
    for start in range(len(stroke) - 1):
        from_x, from_y = x[:, start, np.newaxis], y[:, start, np.newaxis]
        along_x, along_y = x[:, start + 1, np.newaxis] - from_x, y[:, start + 1, np.newaxis] - from_y
        to_x, to_y = pixel_x - from_x, pixel_y - from_y
        length = along_x * along_x + along_y * along_y
        share = np.clip((to_x * along_x + to_y * along_y) / np.maximum(length, 1e-9), 0.0, 1.0)
        off_x, off_y = to_x - share * along_x, to_y - share * along_y
        nearest = np.minimum(nearest, np.sqrt(off_x * off_x + off_y * off_y))
    ink = np.clip(pen + 0.5 - nearest, 0.0, 1.0)
    image: NDArray[np.float64] = np.rint(GREYS * ink)
    return image
