"""Compares a refusal by its class, place and valid values instead of by its wording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from weft.errors import Refusal

# Tests keep their files in temporary directories, so paths are compared by their last part.
_DIRECTORIES = re.compile(r"(?<![\w<>])/(?:[^/\s:,']+/)+")


@contextmanager
def refused(
    kind: type[Exception], *, place: str = "", valid: str = "", key: str = "", problem: str = ""
) -> Iterator[pytest.ExceptionInfo[Refusal]]:
    """Expect a Refusal of a class, or of one below it, with exactly this place and these valid values.

    Args:
        kind: the class.
        place: the place, without directories.
        valid: the valid values as text.
        key: the error's `key`, for classes that have one; not compared if "".
        problem: a word of the problem, for where place and valid values fit another refusal as well.

    """
    with pytest.raises(Refusal) as caught:
        yield caught
    error = caught.value
    assert isinstance(error, kind), repr(error)
    assert (_DIRECTORIES.sub("", error.place), error.valid) == (place, valid), str(error)
    assert problem in error.problem
    assert not key or getattr(error, "key", None) == key
