"""Writes the folder of launchers and Python modules for `weft shims`."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from weft.errors import BadInputError
from weft.paths import ROOT, is_installed
from weft.quantities.units import shown
from weft.switch.p4runtime.device_config import DESCRIPTOR
from weft.system.writing import written_whole

PROGRAMS, MODULES = "bin", "python"
"""Folders for PATH and for PYTHONPATH."""
MARK = "Written by `weft shims`"
_MOST_BYTES = 1024 * 1024
_LAUNCHERS = {
    "p4c": "-m weft.shims.p4c p4c",
    "p4c-bm2-ss": "-m weft.shims.p4c p4c-bm2-ss",
    "simple_switch_grpc": "-m weft.shims.simple_switch",
    "simple_switch_CLI": "-m weft.shims.simple_switch_cli",
    "python3": "",
    "python": "",
}
"""Python's arguments, by the launcher's name."""
_DEVICE_CONFIG = "p4/tmp/p4config_pb2.py"
_DESCRIPTOR_PLACE = 'SERIALISED = b""'


def write_shims(folder: Path) -> list[Path]:
    """Write all files into a folder, which is made if it does not exist, and return their paths.

    Raises:
        BadInputError: the folder cannot be in PATH; or there is a file that `weft shims` has not written.
        EnvironmentLacksError: a file cannot be written.
    """
    folder = Path(os.path.abspath(folder))
    if os.pathsep in str(folder) or not str(folder).isprintable():
        raise BadInputError(f"{shown(str(folder))} cannot be in PATH", valid="a folder without : in its path")
    texts = dict(_texts(folder))
    for path in texts:
        _require_own(path, folder)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as partial:
            partial.write_text(text, encoding="utf-8")
            if path.parent.name == PROGRAMS:
                partial.chmod(partial.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return list(texts)


def environment_line(folder: Path) -> str:
    """Return the line for a shell that puts the launchers first on its PATH.

    The tutorials' Makefile runs `sudo PATH=$(PATH) $(P4_EXTRA_SUDO_OPTS) python3 …`. sudo looks `python3` up in its own
    secure_path; `env` looks it up in the PATH that it is given.
    """
    programs = shlex.quote(os.path.join(os.path.abspath(folder), PROGRAMS))
    return f'export PATH={programs}:"$PATH" P4_EXTRA_SUDO_OPTS=env'


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    modules = folder / MODULES
    for name, arguments in _LAUNCHERS.items():
        yield folder / PROGRAMS / name, _launcher(modules, arguments)
    root = resources.files("weft").joinpath("templates/shims")
    for name, text in _files(root, ""):
        if name == _DEVICE_CONFIG:
            assert _DESCRIPTOR_PLACE in text
            text = text.replace(_DESCRIPTOR_PLACE, f"SERIALISED = {DESCRIPTOR.SerializeToString(deterministic=True)!r}")
        yield modules / name, text


def _files(folder: Traversable, place: str) -> Iterator[tuple[str, str]]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir() and each.name != "__pycache__":
            yield from _files(each, f"{place}{each.name}/")
        elif each.name.endswith(".py"):
            yield place + each.name, each.read_text(encoding="utf-8")


def _launcher(modules: Path, arguments: str) -> str:
    """Return a launcher: `exec` keeps the process id, which Mininet's scripts record."""
    paths = [str(modules), *([] if is_installed() else [str(ROOT)])]
    command = " ".join(filter(None, (shlex.quote(sys.executable), arguments)))
    return (
        f"#!/bin/sh\n# {MARK}.\n"
        # Programs that are started from here find the launchers, too, though sudo may have set another PATH.
        f"{_put_first('PATH', str(modules.parent / PROGRAMS))}{_put_first('PYTHONPATH', os.pathsep.join(paths))}"
        f'exec {command} "$@"\n'
    )


def _put_first(variable: str, paths: str) -> str:
    """Return the lines that put paths first into a variable, once however many launchers start each other."""
    return (
        f"first={shlex.quote(paths)}\n"
        f'case ":${variable}:" in *":$first:"*) ;; *) {variable}="$first${{{variable}:+:${variable}}}" ;; esac\n'
        f"export {variable}\n"
    )


def _require_own(path: Path, folder: Path) -> None:
    """Raise BadInputError unless a path is free or has a file that this module has written; links are another's."""
    for above in path.relative_to(folder).parents:
        place = folder / above
        if above != Path() and (place.is_symlink() or (place.exists() and not place.is_dir())):
            raise BadInputError("is there already, and not a folder", place=place, valid="another DIR")
    if not os.path.lexists(path):
        return
    is_own = False
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            is_own = MARK.encode() in file.read(_MOST_BYTES)
    if not is_own:
        raise BadInputError("is there already, and not from `weft shims`", place=path, valid="another DIR")
