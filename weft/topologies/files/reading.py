"""Reads a topology file of limited size, after guessing the format from how it begins."""

from __future__ import annotations

import stat
from pathlib import Path

from weft.errors import translated
from weft.quantities.units import shown
from weft.topologies.errors import TopologyError, in_file
from weft.topologies.files.graphml import read_graphml
from weft.topologies.files.hpcc import read_hpcc
from weft.topologies.files.listed import ListedGraph
from weft.topologies.files.node_link import read_node_link

MAX_FILE_BYTES = 32 * 1024 * 1024
_MOST_PATH = 1024
_READERS = {"node_link": read_node_link, "graphml": read_graphml, "hpcc": read_hpcc}
FORMATS = tuple(_READERS)
_SUFFIXES = {".json": "node_link", ".graphml": "graphml", ".xml": "graphml"}


def read_graph(path: Path, format_name: str | None = None) -> ListedGraph:
    """Return a file's graph; without a format, the suffix or the first character decides.

    Raises:
        TopologyError: the file is unreadable, too large or malformed; the message names the file and the place.

    """
    if len(str(path)) > _MOST_PATH:
        raise TopologyError(f"{shown(str(path))} is too long a path", valid=f"{_MOST_PATH} characters")
    content = _content(path)
    chosen = format_name or _SUFFIXES.get(path.suffix.lower()) or _guessed(content)
    if chosen not in _READERS:
        raise TopologyError(f"format {shown(chosen)} is not known", valid=FORMATS)
    with translated(TopologyError, in_file, path):
        listed = _READERS[chosen](content)
        listed.require_ends()
    return listed


def _content(path: Path) -> bytes:
    try:
        # Reading a device or pipe may never end, or never begin.
        if not stat.S_ISREG(path.stat().st_mode):
            raise TopologyError(f"{path} is not a file")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None
    if len(content) > MAX_FILE_BYTES:
        raise TopologyError(f"{path} is too large for a topology", valid=f"up to {MAX_FILE_BYTES:,} B")
    return content


def _guessed(content: bytes) -> str:
    first = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"{": "node_link", b"<": "graphml"}.get(first, "hpcc")
