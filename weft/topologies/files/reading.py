"""Reads a topology file of limited size, after guessing the format from its suffix and how it begins."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from weft.errors import translated
from weft.registry import Registry, constant_of
from weft.topologies.errors import TopologyError, in_file, require_path
from weft.topologies.files.format import FileFormat
from weft.topologies.files.listed import ListedGraph

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Most bytes of a file, or of a folder's files together."""
MAX_FILES = 10_000
FORMATS: Registry[FileFormat] = Registry(
    "weft.topologies.files.formats", "format", constant_of(FileFormat), TopologyError
)


def read_graph(path: Path, format_name: str | None = None) -> ListedGraph:
    """Return a file's or folder's graph; without a format, the suffix and the beginning decide.

    Raises:
        TopologyError: the file is unreadable, too large or malformed; the message names the file and the place.

    """
    require_path(path)
    if format_name is not None:
        FORMATS.named(format_name)
    if os.path.isdir(path):
        return _read_folder(path, format_name)
    content = _content(path)
    chosen = FORMATS[format_name] if format_name else _guessed(path.suffix.lower(), content)
    with translated(TopologyError, in_file, path):
        listed = chosen.read(content)
        listed.require_ends()
    return listed


def _read_folder(path: Path, format_name: str | None) -> ListedGraph:
    of_folders = {name: each for name, each in FORMATS.items() if each.read_folder is not None}
    if format_name is not None and format_name not in of_folders:
        raise TopologyError(f"{path} is a folder, but format {format_name} is one file", valid=of_folders)
    suffixes = (
        {of_folders[format_name].folder_suffix} if format_name else {each.folder_suffix for each in of_folders.values()}
    )
    try:
        files = sorted(each for each in path.iterdir() if each.suffix in suffixes)
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}") from None
    if not 1 <= len(files) <= MAX_FILES:
        named = " or ".join(sorted(suffixes))
        raise TopologyError(f"{path} has {len(files)} files {named}", valid=f"1 to {MAX_FILES}")
    contents: dict[str, bytes] = {}
    left_bytes = MAX_FILE_BYTES
    for each in files:
        contents[each.name] = _content(each, left_bytes)
        left_bytes -= len(contents[each.name])
    first = files[0]
    chosen = of_folders[format_name] if format_name else _guessed(first.suffix, contents[first.name])
    if chosen.read_folder is None:
        raise TopologyError(f"{path} has files of format {chosen.name}, which is one file", valid=of_folders)
    with translated(TopologyError, in_file, path):
        listed = chosen.read_folder(contents)
        listed.require_ends()
    return listed


def _content(path: Path, most_bytes: int | None = None) -> bytes:
    most_bytes = MAX_FILE_BYTES if most_bytes is None else most_bytes
    try:
        # Reading a device or pipe may never end, or never begin.
        if not stat.S_ISREG(path.stat().st_mode):
            raise TopologyError(f"{path} is not a file")
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None
    if len(content) > most_bytes:
        raise TopologyError(f"{path} is too large for a topology", valid=f"up to {MAX_FILE_BYTES:,} B")
    return content


def _guessed(suffix: str, content: bytes) -> FileFormat:
    content = content.removeprefix(b"\xef\xbb\xbf")
    ordered = sorted(FORMATS.values(), key=lambda each: each.is_general)
    of_suffix = [each for each in ordered if suffix in each.suffixes]
    for each in of_suffix or ordered:
        if each.recognises(content):
            return each
    return (of_suffix or ordered)[-1]
