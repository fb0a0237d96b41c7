"""Pages that commands have written, each under an address that only the workbench's page knows.

A frame cannot send the token, and a page may have been made from a run of somebody else's: it gets an address of its
own, which gives access to nothing else, and a sandbox without origin, so that its scripts reach neither server nor
workbench.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections import OrderedDict
from pathlib import Path

from weft.errors import BadInputError

_MOST_PAGES = 100
_MOST_BYTES = 256 << 20
_KEY_BYTES = 24
PREFIX = "/pages/"
POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


class Pages:
    """Addresses of files, the latest `_MOST_PAGES` of them; of others, files in `scratch` are deleted."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._lock = threading.Lock()
        self._paths: OrderedDict[str, Path] = OrderedDict()

    def add(self, path: Path) -> str:
        """Return a new address for a file."""
        key = secrets.token_urlsafe(_KEY_BYTES)
        with self._lock:
            self._paths[key] = path
            while len(self._paths) > _MOST_PAGES:
                _, old = self._paths.popitem(last=False)
                if old.parent == self._scratch and old not in self._paths.values():
                    old.unlink(missing_ok=True)
        return f"{PREFIX}{key}"

    def read(self, address: str) -> str:
        """Return the file of an address. Raises BadInputError: there is none."""
        with self._lock:
            path = self._paths.get(address.removeprefix(PREFIX))
        if path is None:
            raise BadInputError("there is no such page; open it again")
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise BadInputError(f"cannot be opened: {error.strerror}", place=path.name) from None
        with os.fdopen(descriptor, "rb") as stream:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
                raise BadInputError("is not a page", place=path.name, valid=f"a file of up to {_MOST_BYTES:,} B")
            return stream.read(_MOST_BYTES).decode(errors="replace")
