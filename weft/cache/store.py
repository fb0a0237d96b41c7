"""Cached results in files of limited size, checked when read and keyed by everything they depend on.

They are in $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else ~/.cache/weft; an empty WEFT_CACHE_DIR turns caching off.
The cache never causes a failure: a missing, damaged or untrusted entry is a miss, and failed writes are ignored.
Processes may share the directory, because entries appear atomically.

Machine code is loaded from here, so only files and directories that belong to this user, and that nobody else may
write, are trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

SIZE_LIMIT_BYTES = 64 * 1024 * 1024
"""Most bytes of all entries of one kind; the least recently used are deleted first."""

ENTRY_LIMIT = 64
"""Most entries of one kind."""

_MAGIC = b"weft-cache-1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".entry"


def cache_directory() -> Path | None:
    """Return the cache's directory; None if caching is off."""
    setting = os.environ.get("WEFT_CACHE_DIR")
    if setting is not None:
        return Path(setting) if setting else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification requires ignoring relative paths.
    folder = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return folder / "weft"


def unusable_because() -> str | None:
    """Return why nothing can be cached; None if it can. Nothing is created."""
    folder = cache_directory()
    if folder is None:
        return "WEFT_CACHE_DIR is empty, which turns caching off"
    if folder.exists() and not _is_ours(folder):
        return f"{folder} belongs to another user, or others may write it"
    nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not nearest.is_dir():
        return f"{nearest} is not a directory"
    return None if os.access(nearest, os.W_OK | os.X_OK) else f"{nearest} cannot be written"


def remove_cache() -> list[Path]:
    """Delete all entries, and the directory if it is then empty; return the deleted paths."""
    folder = cache_directory()
    if folder is None or not folder.is_dir():
        return []
    removed = []
    for file in sorted(folder.iterdir()):
        if file.suffix in (_SUFFIX, ".partial") and file.is_file():
            file.unlink(missing_ok=True)
            removed.append(file)
    with contextlib.suppress(OSError):
        folder.rmdir()
    return removed


def version_of(folders: Iterable[Path], suffixes: tuple[str, ...] = (".py",)) -> str:
    """Return the SHA-256 of the names and contents of the files in `folders` that end in one of `suffixes`.

    As part of a key, it turns results of other versions of the computing code into misses, without a version number
    to maintain.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for directory, names, files in os.walk(folder):
            names.sort()
            for name in sorted(files):
                if name.endswith(suffixes):
                    path = os.path.join(directory, name)
                    with open(path, "rb") as file:
                        content = file.read()
                    digest.update(f"{os.path.relpath(path, folder)}\0{len(content)}\0".encode())
                    digest.update(content)
    return digest.hexdigest()


class Store:
    """The entries of one kind. An entry is a set of named byte strings."""

    def __init__(self, kind: str, *, size_limit_bytes: int = SIZE_LIMIT_BYTES, entry_limit: int = ENTRY_LIMIT) -> None:
        self.kind = kind
        self.size_limit_bytes = size_limit_bytes
        self.entry_limit = entry_limit

    def path(self, key: str) -> Path | None:
        """Return an entry's file; None if caching is off."""
        folder = cache_directory()
        return None if folder is None else folder / f"{self.kind}-{key}{_SUFFIX}"

    def key(self, *parts: str) -> str:
        """Return the SHA-256 of `parts`."""
        digest = hashlib.sha256()
        for part in parts:
            encoded = part.encode("utf-8", "surrogateescape")
            digest.update(f"{len(encoded)}\0".encode())
            digest.update(encoded)
        return digest.hexdigest()

    def read(self, key: str) -> dict[str, bytes] | None:
        """Return an entry and mark it as just used; None if there is no valid entry."""
        path = self.path(key)
        if path is None or not _is_ours(path.parent):
            return None
        try:
            with path.open("rb") as file:
                if not _belongs_to_us(os.fstat(file.fileno())):
                    return None
                data = file.read()
            os.utime(path)
        except OSError:
            return None
        return _unpack(data)

    def holds(self, key: str) -> bool:
        """Return whether there is an entry, without reading it: a damaged one counts."""
        path = self.path(key)
        if path is None or not _is_ours(path.parent):
            return False
        try:
            return _belongs_to_us(path.stat())
        except OSError:
            return False

    def write(self, key: str, parts: Mapping[str, bytes]) -> None:
        """Store an entry; silently do nothing if that is impossible."""
        path = self.path(key)
        if path is None:
            return
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_ours(path.parent):
                return
            partial = path.with_name(f"{os.getpid()}-{threading.get_ident()}.partial")
            try:
                # Nobody else may write it, whatever the umask allows.
                with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(_pack(parts))
                os.replace(partial, path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
            self._prune(path.parent)

    def _prune(self, folder: Path) -> None:
        files = []
        for file in folder.glob(f"{self.kind}-*{_SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):  # another process prunes, too
                status = file.stat()
                files.append((status.st_mtime_ns, status.st_size, file))
        total_bytes = 0
        for count, (_, size_bytes, file) in enumerate(sorted(files, reverse=True), 1):
            total_bytes += size_bytes
            if count > self.entry_limit or (total_bytes > self.size_limit_bytes and count > 1):
                file.unlink(missing_ok=True)


def _is_ours(folder: Path) -> bool:
    try:
        return _belongs_to_us(folder.stat())
    except OSError:
        return False


def _belongs_to_us(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _pack(parts: Mapping[str, bytes]) -> bytes:
    """Return the file format: magic, digest of the rest, a line of JSON with names and sizes, the parts."""
    header = json.dumps({name: len(data) for name, data in parts.items()}).encode() + b"\n"
    body = header + b"".join(parts.values())
    return _MAGIC + hashlib.sha256(body).digest() + body


def _unpack(data: bytes) -> dict[str, bytes] | None:
    start = len(_MAGIC) + _DIGEST_BYTES
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        return None
    position = body.index(b"\n") + 1
    parts = {}
    for name, size_bytes in json.loads(body[:position]).items():
        parts[name] = body[position : position + size_bytes]
        position += size_bytes
    return parts
