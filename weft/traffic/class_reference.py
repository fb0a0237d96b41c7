"""How scenarios name classes of users."""

from __future__ import annotations

import re
from pathlib import Path

CLASS_REFERENCE = r"^[^:]+\.(py:[A-Za-z_]|xml:[A-Za-z_]|cpp:[A-Za-z_-])[A-Za-z_0-9-]*$"
"""path/to/file.py:Class; of collectives also path/to/file.xml:COLLECTIVE, an algorithm of MSCCL; of congestion controls
also path/to/file.cpp:NAME, which is compiled"""


def is_class_reference(text: str) -> bool:
    """Return whether a text names a user's class rather than one of Weft's."""
    return re.match(CLASS_REFERENCE, text) is not None


def is_msccl_reference(text: str) -> bool:
    """Return whether a reference names an algorithm of MSCCL."""
    return is_class_reference(text) and text.rpartition(":")[0].endswith(".xml")


def is_cpp_reference(text: str) -> bool:
    """Return whether a reference names something in a file of C++."""
    return is_class_reference(text) and text.rpartition(":")[0].endswith(".cpp")


def absolute_reference(reference: str, folder: Path) -> str:
    """Return the reference with its file's absolute path; a relative one is below `folder`."""
    file, _, name = reference.rpartition(":")
    return f"{(folder / file).resolve()}:{name}"


def short_reference(reference: str) -> str:
    """Return the reference without folders, for results that should not depend on a file's location."""
    return Path(reference).name
