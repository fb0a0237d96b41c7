"""Files that describe the inside of a host: one module for each format, found by its `KIND`."""

from __future__ import annotations

from pathlib import Path

from weft.cache import UnreadableFileError, read_bytes
from weft.errors import translated
from weft.registry import Registry, constant_of
from weft.topologies.errors import TopologyError, in_file, require_path
from weft.topologies.host_files.shape import HostFormat, HostShape

MAX_FILE_BYTES = 8 * 1024 * 1024
HOST_FORMATS: Registry[HostFormat] = Registry(__name__, "format of hosts", constant_of(HostFormat), TopologyError)

__all__ = ["HOST_FORMATS", "HostFormat", "HostShape", "read_host"]


def read_host(path: Path) -> HostShape:
    """Return the shape of the host that a file describes.

    Raises:
        TopologyError: the file is unreadable, too large, of no known format, or contradicts itself; with the place.

    """
    require_path(path)
    try:
        content = read_bytes(path, MAX_FILE_BYTES)
    except UnreadableFileError as error:
        raise TopologyError(error) from None
    except (OSError, ValueError) as error:
        raise TopologyError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None
    for each in HOST_FORMATS.values():
        if each.recognises(content):
            with translated(TopologyError, in_file, path):
                return each.read(content)
    raise TopologyError(f"{path} describes no host", valid=(each.title for each in HOST_FORMATS.values()))
