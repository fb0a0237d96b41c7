"""A workbench's folder: scenario files in it, and the directories of their runs in its folder `runs`.

Names come from a browser, so each is one plain name, and symbolic links are not followed: nothing outside the folder is
read or written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.errors import BadInputError, EnvironmentLacksError, WeftError
from weft.quantities.units import shown
from weft.quantities.yaml_files import MAX_FILE_BYTES
from weft.results.run_result import RESULTS_FILE

RUNS = "runs"
MOST_SCENARIOS = 500
MOST_RUNS = 200
"""Scenarios, and runs of each, that are listed."""
_NAME = re.compile(r"(?P<stem>[A-Za-z0-9][A-Za-z0-9._-]{0,63})\.ya?ml", re.ASCII)
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}", re.ASCII)
_VALID_NAME = "up to 64 of A-Z a-z 0-9 . _ -, the first one a letter or a digit, then .yaml or .yml"


class ConflictError(WeftError):
    """A file is not what the page last saw, or is in use."""


@dataclass(frozen=True)
class Scenario:
    """A scenario file: its name, its text, and the text's version, which changes with it."""

    file: str
    text: str

    @property
    def version(self) -> str:
        """A hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class Folder:
    """Reads and writes a folder's scenarios, one at a time. Close it after use."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise BadInputError(f"cannot be opened: {error.strerror}", place=path) from None
        self.lock = threading.RLock()

    def close(self) -> None:
        """Close the folder."""
        os.close(self._descriptor)

    def names(self) -> list[str]:
        """Return the names of the scenarios in order, at most `MOST_SCENARIOS`."""
        # Duplicates of a descriptor have one place in the directory together, and several threads may look.
        own = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._descriptor)
        try:
            with os.scandir(own) as entries:
                found = [
                    each.name for each in entries if _NAME.fullmatch(each.name) and each.is_file(follow_symlinks=False)
                ]
        finally:
            os.close(own)
        return sorted(found)[:MOST_SCENARIOS]

    def read(self, file: str) -> Scenario:
        """Return a scenario. Raises BadInputError."""
        with self._opened(file, os.O_RDONLY) as descriptor, os.fdopen(os.dup(descriptor), "rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise BadInputError("is too large for a scenario", place=file, valid=f"up to {MAX_FILE_BYTES:,} B")
        try:
            return Scenario(file, content.decode())
        except UnicodeDecodeError as error:
            raise BadInputError(f"is not UTF-8 text: {error}", place=file) from None

    def write(self, file: str, text: str, version: str) -> Scenario:
        """Replace a scenario as a whole, and return it.

        Raises:
            BadInputError: the text is too large.
            ConflictError: the file no longer has the text of this version.
            EnvironmentLacksError: it cannot be written.
        """
        content = _encoded(file, text)
        with self.lock:
            self._require_version(file, version)
            partial = f".partial-{file}"
            with _written(file):
                try:
                    # An editor may have left a link of that name.
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(partial, dir_fd=self._descriptor)
                    mode = stat.S_IMODE(os.stat(file, dir_fd=self._descriptor, follow_symlinks=False).st_mode)
                    self._write_new(partial, content, mode)
                    os.replace(partial, file, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(partial, dir_fd=self._descriptor)
                    raise
        return Scenario(file, text)

    def create(self, file: str, text: str, *, instead_of: str = "") -> Scenario:
        """Write a new scenario, which may have the runs of one that it replaces.

        Raises as `write`; BadInputError if there is such a file, or another one that its runs are named after.
        """
        _require_name(file)
        content = _encoded(file, text)
        with self.lock, _written(file):
            # Runs have the name without the suffix.
            if same := [each for each in self.names() if _stem(each) == _stem(file) and each not in (file, instead_of)]:
                raise BadInputError(f"would share its runs with {same[0]}; choose another name", place=file)
            try:
                self._write_new(file, content)
            except FileExistsError:
                raise BadInputError("is there already; choose another name", place=file) from None
        return Scenario(file, text)

    def rename(self, file: str, to: str) -> None:
        """Rename a scenario, and the directories of its runs. Raises as `create`."""
        _require_name(to)
        with self.lock:
            scenario = self.read(file)
            self.create(to, scenario.text, instead_of=file)
            with _written(file):
                os.replace(file, to, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
                for run in sorted(self._numbered(file), key=_number):
                    (self.path / RUNS / run).rename(self.new_run(to, reserve=False))

    def delete(self, file: str, version: str) -> None:
        """Delete a scenario; its runs stay. Raises as `write`."""
        with self.lock:
            self._require_version(file, version)
            with _written(file):
                os.unlink(file, dir_fd=self._descriptor)

    def runs(self, file: str, name: str | None) -> list[str]:
        """Return the runs of a scenario that have results, the newest first.

        These are the workbench's, FILE-NUMBER, and those that `weft run` has named after the scenario's key `name`.
        """
        found = set(self._numbered(file))
        if name is not None:
            of_cli = re.compile(rf"{re.escape(name)}-[0-9]{{8}}-[0-9]{{6}}(-[0-9]{{1,4}})?", re.ASCII)
            found |= {run for run in self._directories() if of_cli.fullmatch(run)}
        return self._latest(found)

    def all_runs(self) -> list[str]:
        """Return all directories of `runs` that have results, the newest first."""
        return self._latest(self._directories())

    def _latest(self, found: Iterable[str]) -> list[str]:
        with_times = [(self.results_time_ns(run), run) for run in found]
        ordered = sorted(((time, run) for time, run in with_times if time is not None), reverse=True)
        return [run for _, run in ordered[:MOST_RUNS]]

    def results_time_ns(self, run: str) -> int | None:
        """Return when a run's results were written; None if there are none."""
        with contextlib.suppress(OSError, BadInputError):
            found = (self.run_directory(run) / RESULTS_FILE).lstat()
            return found.st_mtime_ns if stat.S_ISREG(found.st_mode) else None
        return None

    def run_directory(self, run: str) -> Path:
        """Return the path of a run's directory. Raises BadInputError: there is none."""
        if not (isinstance(run, str) and _RUN.fullmatch(run)):
            raise BadInputError(f"{shown(run)} is not the name of a run")
        if not (_is_directory(self.path / RUNS) and _is_directory(self.path / RUNS / run)):
            raise BadInputError("there is no such run", place=f"{RUNS}/{run}")
        return self.path / RUNS / run

    def new_run(self, file: str, *, reserve: bool = True) -> Path:
        """Return the path of a directory for the next run of a scenario, by default made. Raises BadInputError."""
        with self.lock, _written(RUNS):
            runs = self.path / RUNS
            runs.mkdir(exist_ok=True)
            if not _is_directory(runs):
                raise BadInputError("is a link, no folder", place=RUNS)
            numbers = [_number(run) for run in self._numbered(file)]
            path = runs / f"{_stem(file)}-{max(numbers, default=0) + 1}"
            if reserve:
                path.mkdir()
            return path

    def _numbered(self, file: str) -> list[str]:
        own = re.compile(rf"{re.escape(_stem(file))}-[0-9]{{1,6}}", re.ASCII)
        return [run for run in self._directories() if own.fullmatch(run)]

    def _directories(self) -> list[str]:
        if not _is_directory(self.path / RUNS):
            return []
        with os.scandir(self.path / RUNS) as entries:
            return [each.name for each in entries if each.is_dir(follow_symlinks=False) and _RUN.fullmatch(each.name)]

    def _require_version(self, file: str, version: str) -> None:
        if self.read(file).version != version:
            raise ConflictError("has changed on disk since the page read it", place=file)

    def _write_new(self, name: str, content: bytes, mode: int | None = None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(name, flags, 0o666, dir_fd=self._descriptor)
        with os.fdopen(descriptor, "wb") as stream:
            if mode is not None:
                os.fchmod(descriptor, mode)
            stream.write(content)

    @contextlib.contextmanager
    def _opened(self, file: str, flags: int) -> Iterator[int]:
        _require_name(file)
        try:
            # Not to wait for the other end of a named pipe.
            descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._descriptor)
        except FileNotFoundError:
            raise BadInputError("there is no such scenario", place=file) from None
        except OSError as error:
            raise BadInputError(f"cannot be opened: {error.strerror}", place=file) from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise BadInputError("is not a file", place=file)
            yield descriptor
        finally:
            os.close(descriptor)


def _require_name(file: object) -> None:
    if not (isinstance(file, str) and _NAME.fullmatch(file)):
        raise BadInputError(f"{shown(file)} is not the name of a scenario file", valid=_VALID_NAME)


def _stem(file: str) -> str:
    match = _NAME.fullmatch(file)
    if match is None:
        raise BadInputError(f"{shown(file)} is not the name of a scenario file", valid=_VALID_NAME)
    return match["stem"]


def _number(run: str) -> int:
    return int(run.rpartition("-")[2])


def _encoded(file: str, text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise BadInputError("the text has half of a surrogate pair, which no file can hold", place=file) from None
    if len(content) > MAX_FILE_BYTES:
        raise BadInputError("is too large for a scenario", place=file, valid=f"up to {MAX_FILE_BYTES:,} B")
    return content


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def _written(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentLacksError(f"{name} cannot be written: {error.strerror}") from None
