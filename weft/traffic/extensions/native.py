"""Users' congestion controls in C++: compiled when they are first used, and kept in the cache."""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from weft.cache.store import Store, cache_directory, unusable_because
from weft.engine import ExtensionError, _core, load_congestion_controls
from weft.traffic.class_reference import is_class_reference, is_cpp_reference

INTERFACE = Path(_core.__file__).with_name("include")
"""The engine's sources that a control is compiled with, as they were when the engine was built."""

FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
_COMPILERS = ("c++", "g++", "clang++")
_MOST_SHOWN_LINES = 30
LONGEST_S = 300.0
"""Time that a compiler may take for a file."""
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
    if '"' in str(path) or "\n" in str(path):
        raise ExtensionError(f"{path}: a file to be compiled has no quotation mark or line break in its path")
    compiler = _compiler()
    with tempfile.TemporaryDirectory(prefix="weft-control-") as folder:
        # With all that it includes: a header of the user's is as much of the control as the file.
        whole = _preprocessed(compiler, path, Path(folder))
        key = _STORE.key(str(path), hashlib.sha256(whole).hexdigest(), compiler, _version(compiler), *FLAGS)
        stored = _STORE.read(key)
        library = stored["library"] if stored is not None else _compiled(compiler, path, Path(folder))
        if stored is None:
            _STORE.write(key, {"library": library})
        return f"{key[:16]}:", tuple(_loaded(path, key, library, Path(folder)))


def _loaded(path: Path, key: str, library: bytes, folder: Path) -> list[str]:
    """Load a library and return the names of its controls.

    It is in memory that nobody but this process can reach, and that may be executed wherever folders lie. The loader
    takes libraries of one name for one.
    """
    if not faulthandler.is_enabled():
        with contextlib.suppress(OSError, ValueError):  # standard error may be closed, or no file
            faulthandler.enable()  # a crash of the user's code says at least where Weft was
    descriptor = os.memfd_create(path.name)
    with open(descriptor, "wb") as file:
        file.write(library)
        file.flush()
        link = folder / f"{key}.so"
        link.symlink_to(f"/proc/self/fd/{descriptor}")
        try:
            return load_congestion_controls(str(link), f"{key[:16]}:")
        except ValueError as error:
            raise ExtensionError(f"{path} cannot be loaded: {error}") from None


def _compiler() -> str:
    chosen = os.environ.get("CXX", "").split()
    found = next((path for name in (*chosen[-1:], *_COMPILERS) if (path := shutil.which(name))), None)
    if found is None:
        raise ExtensionError(
            f"a congestion control in C++ needs a compiler (tried {', '.join(_COMPILERS)}). Debian, Ubuntu: "
            "apt install g++; Fedora: dnf install gcc-c++"
        )
    return found


def _version(compiler: str) -> str:
    return _run([compiler, "--version"], Path(compiler)).decode(errors="replace")


def _preprocessed(compiler: str, path: Path, folder: Path) -> bytes:
    """Return a file with all that it includes. Raises ExtensionError with what the compiler said."""
    parts = ("congestion/parameters.cpp", "congestion/own_registration.hpp", str(path))
    source = folder / "all.cpp"
    source.write_text("".join(f'#include "{part}"\n' for part in parts), encoding="utf-8")
    # Without line markers, which name the temporary folder.
    return _run([compiler, "-std=c++20", f"-I{INTERFACE}", "-E", "-P", str(source)], path)


def _compiled(compiler: str, path: Path, folder: Path) -> bytes:
    """Return the library of a file with users' controls. Raises ExtensionError with what the compiler said."""
    kept = cache_directory()
    where = f"kept in {kept}" if kept is not None and unusable_because() is None else "not kept: no cache"
    print(f"· compiling {path.name} (once; {where})", file=sys.stderr, flush=True)
    made = folder / "made.so"
    _run([compiler, *FLAGS, f"-I{INTERFACE}", "-o", str(made), str(folder / "all.cpp")], path)
    return made.read_bytes()


def _run(command: Sequence[str], path: Path) -> bytes:
    """Return what a compiler prints for a file. Raises ExtensionError with what it complains of."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        raise ExtensionError(f"{path}: {name} takes more than {LONGEST_S:g} s") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").splitlines()
    more = [f"… {len(said) - _MOST_SHOWN_LINES} lines more"] if len(said) > _MOST_SHOWN_LINES else []
    shown = "\n".join(said[:_MOST_SHOWN_LINES] + more)
    raise ExtensionError(f"{path} does not compile ({name}):\n{shown}")
