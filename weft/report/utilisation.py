"""Colours of utilisation: distinguished by lightness and width as well as by hue."""

from __future__ import annotations

from itertools import pairwise

# From idle to full: grey, sky blue, orange, vermilion (Okabe and Ito's, which colour-blind readers can distinguish).
_STOPS = ((0.0, (148, 163, 178)), (0.35, (86, 180, 233)), (0.7, (230, 159, 0)), (1.0, (200, 60, 10)))
FAILED_COLOUR = "#d1007a"
"""Colour of links that failed, outside the ramp; they are drawn dashed."""
_THINNEST, _WIDEST = 0.8, 4.5


def colour_of(share: float) -> str:
    """Return a CSS colour for a share of a link's rate, 0 to 1."""
    share = min(1.0, max(0.0, share))
    for (low, from_colour), (high, to_colour) in pairwise(_STOPS):
        if share <= high:
            part = (share - low) / (high - low)
            red, green, blue = (round(a + (b - a) * part) for a, b in zip(from_colour, to_colour, strict=True))
            return f"#{red:02x}{green:02x}{blue:02x}"
    raise AssertionError("a share is at most 1")


def width_of(share: float) -> float:
    """Return the width in pixels at which a link with this share of its rate in use, 0 to 1, is drawn."""
    return _THINNEST + (_WIDEST - _THINNEST) * min(1.0, max(0.0, share))
