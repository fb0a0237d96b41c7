"""Users' congestion controls in C++: compiled when they are first used, and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from weft.cache.store import Store, version_of
from weft.engine import ExtensionError, _core, load_congestion_controls
from weft.traffic.class_reference import is_class_reference, is_cpp_reference

INTERFACE = Path(_core.__file__).with_name("include")
"""The engine's sources that a control is compiled with, as they were when the engine was built."""

FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
_COMPILERS = ("c++", "g++", "clang++")
_MOST_SHOWN_LINES = 30
_STORE = Store("control")


def engine_name(name: str) -> str | None:
    """Return the name by which the engine knows a congestion control; None if it is a class in Python.

    Raises:
        ExtensionError: there is no such file in C++, it cannot be compiled, or it has no control of that name.
    """
    if not is_class_reference(name):
        return name
    if not is_cpp_reference(name):
        return None
    file, _, control = name.rpartition(":")
    path = Path(file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ExtensionError(f"{file} cannot be read: {error.strerror}") from None
    prefix, names = _controls_of(path.resolve(), content)
    if control not in names:
        valid = f"valid: {', '.join(sorted(names))}" if names else "it registers none"
        raise ExtensionError(f"{file} registers no congestion control '{control}' ({valid})")
    return prefix + control


@cache
def _controls_of(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the prefix of the engine's names for the controls of a file, and their own names."""
    if not INTERFACE.is_dir():
        raise ExtensionError(f"{INTERFACE} is missing, with which {path.name} is compiled: build the engine again")
    compiler = _compiler()
    flags = " ".join(FLAGS)
    key = _STORE.key(str(path), hashlib.sha256(content).hexdigest(), version_of([INTERFACE], (".hpp", ".cpp")), flags)
    stored = _STORE.read(key)
    library = stored["library"] if stored is not None else _compiled(compiler, path)
    if stored is None:
        _STORE.write(key, {"library": library})
    prefix = f"{key[:16]}:"
    # Memory that nobody but this process can reach, and that may be executed wherever folders lie. The loader takes
    # libraries of one name for one.
    descriptor = os.memfd_create(path.name)
    with open(descriptor, "wb") as file, tempfile.TemporaryDirectory(prefix="weft-control-") as folder:
        file.write(library)
        file.flush()
        link = Path(folder, f"{key}.so")
        link.symlink_to(f"/proc/self/fd/{descriptor}")
        try:
            names = load_congestion_controls(str(link), prefix)
        except ValueError as error:
            raise ExtensionError(f"{path} cannot be loaded: {error}") from None
    return prefix, tuple(names)


def _compiler() -> str:
    chosen = os.environ.get("CXX", "").split()
    found = next((path for name in (*chosen[-1:], *_COMPILERS) if (path := shutil.which(name))), None)
    if found is None:
        raise ExtensionError(
            f"a congestion control in C++ needs a compiler (tried {', '.join(_COMPILERS)}). Debian, Ubuntu: "
            "apt install g++; Fedora: dnf install gcc-c++"
        )
    return found


def _compiled(compiler: str, path: Path) -> bytes:
    """Return the library of a file with users' controls. Raises ExtensionError with what the compiler said."""
    with tempfile.TemporaryDirectory(prefix="weft-control-") as folder:
        made, all_of_it = Path(folder, "control.so"), Path(folder, "all.cpp")
        parts = ("congestion/parameters.cpp", "congestion/own_registration.hpp", str(path))
        if '"' in str(path) or "\n" in str(path):
            raise ExtensionError(f"{path}: a file to be compiled has no quotation mark or line break in its path")
        all_of_it.write_text("".join(f'#include "{part}"\n' for part in parts), encoding="utf-8")
        command = [compiler, *FLAGS, f"-I{INTERFACE}", "-o", str(made), str(all_of_it)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
        if done.returncode != 0:
            said = done.stderr.splitlines()
            more = [f"… {len(said) - _MOST_SHOWN_LINES} lines more"] if len(said) > _MOST_SHOWN_LINES else []
            shown = "\n".join(said[:_MOST_SHOWN_LINES] + more)
            raise ExtensionError(f"{path} does not compile ({Path(compiler).name}):\n{shown}")
        return made.read_bytes()
