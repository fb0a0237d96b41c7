"""Files that are written completely or not at all, and errors that name them.

The system's error for a failed write (a full disk, a quota) does not name the file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from weft.errors import EnvironmentLacksError


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a path next to `path` to write to; it replaces `path` on success, and is deleted otherwise.

    The suffix is the same. A device or a pipe is written to as it is; of a link, what it leads to is replaced.

    Raises:
        EnvironmentLacksError: the file cannot be written; names it, and why.
    """
    if path.exists() and not path.is_file():
        with write_errors_named(path):
            yield path
        return
    target = path.resolve()
    partial = target.with_name(f".partial-{target.name}")
    with write_errors_named(path):
        try:
            yield partial
            os.replace(partial, target)
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
        # Libraries that write for us may report only that they failed.
        reason = error.strerror or (os.strerror(error.errno) if error.errno else str(error))
        raise EnvironmentLacksError(f"{path} cannot be written: {reason}") from error
