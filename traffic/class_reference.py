"""How scenarios name classes of users."""

from __future__ import annotations

import re

CLASS_REFERENCE = r"^[^:]+\.py:[A-Za-z_][A-Za-z_0-9]*$"
"""path/to/file.py:Class"""


def is_class_reference(text: str) -> bool:
    """Return whether a text names a class of a user rather than something of Weft's."""
    return re.match(CLASS_REFERENCE, text) is not None
