"""Files that are written whole or not at all, and errors that name them.

The system's error of a failed write (a full disk, a quota) knows no file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from weft.errors import EnvironmentLacksError


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; it takes the place of `path` if all went well, and goes if not.

    Raises:
        EnvironmentLacksError: the file cannot be written; names it, and why.
    """
    partial = path.with_name(f".{path.name}.partial")
    with write_errors_named(path):
        try:
            yield partial
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def write_errors_named(path: Path) -> Iterator[None]:
    """Raise EnvironmentLacksError, which names the file, for an OSError."""
    try:
        yield
    except OSError as error:
        raise EnvironmentLacksError(f"{path} cannot be written: {error.strerror or error}") from error
