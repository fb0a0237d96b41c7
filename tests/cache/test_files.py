"""What a user names may be a device, a folder or without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.cache import UnreadableFileError, read_bytes, read_text


def test_files_are_read_up_to_their_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("ä\r\nb\rc\n".encode())
    assert read_bytes(path, 8) == path.read_bytes()
    assert read_text(path, 8) == path.read_text(encoding="utf-8") == "ä\nb\nc\n"
    with pytest.raises(UnreadableFileError, match=r"/file: the file is larger than 7 bytes"):
        read_bytes(path, 7)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it
    for path, kind in (("/dev/zero", "a device"), (tmp_path, "a folder"), (tmp_path / "pipe", "a pipe")):
        with pytest.raises(UnreadableFileError, match=f"{path}: this is {kind}, not a regular file"):
            read_bytes(path, 1 << 40)
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "missing", 1)


def test_files_that_do_not_report_their_size() -> None:
    assert b"Name:" in read_bytes("/proc/self/status", 1 << 20)
