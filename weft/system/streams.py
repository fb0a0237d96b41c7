"""Prepares the standard streams for a command, and text for a terminal."""

from __future__ import annotations

import os
import sys
from typing import IO, TextIO

_STANDARD = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def usable_streams() -> None:
    """Make the process's standard streams usable, so that reading and printing never fail because of the caller.

    A closed stream (`2>&-`) becomes /dev/null: Python sets it to None, and the next opened file would take its number
    and receive printed text. Characters that an output's encoding lacks, such as µ in ASCII, are printed as `?`.
    """
    for number, name, mode in _STANDARD:
        if getattr(sys, name) is None:
            stream = _null_device(number, mode)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        elif mode == "w":
            _never_refusing(getattr(sys, name))


def _null_device(number: int, mode: str) -> IO[str]:
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.set_inheritable(number, True)
    return open(number, mode, encoding="utf-8", closefd=False)


def _never_refusing(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)  # a replacement stream may lack it
    if reconfigure is not None and stream.errors == "strict":
        reconfigure(errors="replace")


def printable(text: str, kept: str = "") -> str:
    """Return text with unprintable characters escaped, because they could control the terminal.

    Characters in `kept`, such as newlines, are not escaped.
    """
    return "".join(letter if letter.isprintable() or letter in kept else repr(letter)[1:-1] for letter in text)
