"""Description of a format of topology files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.topologies.files.listed import ListedGraph


@dataclass(frozen=True)
class FileFormat:
    """A format of topology files.

    Attributes:
        name: value of `format` in a scenario's `fabric` section.
        read: returns the graph of a file's content. Raises TopologyError with the place within the file.
        recognises: whether content looks like this format; it may begin with white space, but not with a byte order
            mark. Formats with `is_general` are asked last.
        suffixes: suffixes of its files, in small letters; files with other formats' suffixes are of other formats.
        is_general: whether other formats may look like this one.
        read_folder: returns the graph of a folder with a file for each device, by file name; None for formats of one
            file. Raises as `read`, with the file's name in the place.
        folder_suffix: suffix of the files in a folder.
    """

    name: str
    read: Callable[[bytes], ListedGraph]
    recognises: Callable[[bytes], bool]
    suffixes: tuple[str, ...] = ()
    is_general: bool = False
    read_folder: Callable[[Mapping[str, bytes]], ListedGraph] | None = None
    folder_suffix: str = ".json"
