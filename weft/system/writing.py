"""Writes files completely or not at all, with errors that name the file.

The system's error for a failed write (a full disk, a quota) does not name it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from weft.errors import EnvironmentLacksError


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; it replaces `path` on success and is deleted otherwise.

    The suffix is the same. Devices and pipes are written directly; for a symbolic link, its target is replaced.

    Raises:
        EnvironmentLacksError: the file cannot be written; names the file and the reason.
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
    """Turn an OSError into EnvironmentLacksError, which names the file."""
    try:
        yield
    except OSError as error:
        # Some libraries only report that writing failed.
        reason = error.strerror or (os.strerror(error.errno) if error.errno else str(error))
        raise EnvironmentLacksError(f"{path} cannot be written: {reason}") from error
