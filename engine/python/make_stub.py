"""Writes weft/engine/_core.pyi from the built module: `make stubs`.

pybind11-stubgen reads classes, functions, arguments, defaults and docstrings. What it cannot know is added here:

- arguments are of the plain type: pybind11 says SupportsInt where the engine's callers give an int, and Any for
  Python's object;
- arguments that may be None though their type is a class of the module (`.none(true)`), which signatures do not show;
- the dictionaries that the module returns, as TypedDicts: those of statistics from what the bindings declare
  (`record_types`), all others from weft/engine/records.py;
- a class that is bound after its first use in a signature stands there by its C++ name.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
STUB = ROOT / "weft" / "engine" / "_core.pyi"
MODULE = "weft.engine._core"

_HEADER = '''"""Types of the native module, made by `make stubs` (engine/python/make_stub.py): do not edit."""

import collections.abc
import typing

import numpy
import numpy.typing
import typing_extensions

'''
_MAY_BE_NONE = (
    *("capture", "received", "sent", "memory", "path_choice", "parsed_by", "fast_forward", "routes", "mrc_routes"),
    *("host_links", "memory_domain", "shared_receives", "groups"),
)
_PLAIN = (
    (r"typing\.SupportsInt \| typing\.SupportsIndex", "int"),
    (r"typing\.SupportsFloat \| typing\.SupportsIndex", "float"),
    (r'typing\.Annotated\[(list\[[^"]*\]|collections\.abc\.Sequence\[[^"]*\]), "FixedSize\(\d+\)"\]', r"\1"),
    (r"typing\.Annotated\[numpy\.typing\.ArrayLike, (numpy\.\w+)\]", r"numpy.typing.NDArray[\1]"),
    (r"typing\.Any", "object"),
    (r"typing_extensions\.Buffer", "typing_extensions.Buffer | numpy.typing.NDArray[typing.Any]"),
    (r"= <[^>]*>", "= ..."),
    (rf"\b({'|'.join(_MAY_BE_NONE)}): (\w+)( = None)?(?=[,)])", r"\1: \2 | None\3"),
    # Docstrings as everywhere else in Weft.
    (r':\n( +)"""\n +(.+)\n +"""\n', r':\n\1"""\2"""\n'),
    (r':\n( +)"""\n +(\S)', r':\n\1"""\2'),
)
_RECORD = re.compile(r"^class (\w+)\((?:TypedDict|\w+)|^(\w+) = tuple\[", re.MULTILINE)


def stub() -> str:
    """Return the stub's text, formatted."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["pybind11_stubgen", "--ignore-all-errors", "--print-invalid-expressions-as-is"]
        subprocess.run(
            [sys.executable, "-m", *command, "--output-dir", folder, MODULE],
            check=True,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        text = (Path(folder) / Path(*MODULE.split("."))).with_suffix(".pyi").read_text(encoding="utf-8")
    # Imports and __all__ are stubgen's guess of what the file needs.
    body = text[re.search(r"^__all__.*\]$", text, re.MULTILINE).end() :]  # type: ignore[union-attr]
    body = re.sub(r"weft::(\w+)", r"\1", body)
    for pattern, plain in _PLAIN:
        body = re.sub(pattern, plain, body)
    return _formatted(_HEADER + _imported_records() + _declared_records() + body)


def _imported_records() -> str:
    text = (STUB.parent / "records.py").read_text(encoding="utf-8")
    names = sorted(name for found in _RECORD.findall(text) for name in found if name)
    return "from weft.engine.records import (\n" + "".join(f"    {n} as {n},\n" for n in names) + ")\n\n"


def _declared_records() -> str:
    from weft.engine import record_types

    classes = []
    for name, fields in record_types().items():
        lines = [f"class {name}(typing.TypedDict):"]
        for key, (kind, meaning) in fields.items():
            lines.append(f"    {key}: {kind}")
            if meaning:
                sentence = f'"""{meaning[0].upper()}{meaning[1:]}.'
                lines.append(textwrap.indent(textwrap.fill(sentence, 110), "    ") + '"""')
        classes.append("\n".join(lines) + "\n")
    return "\n".join(classes) + "\n"


def _formatted(text: str) -> str:
    for command in (["check", "--quiet", "--fix", "--select", "I"], ["format"]):
        ruff = [str(Path(sys.executable).parent / "ruff"), *command, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(ruff, input=text, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    return text


def main() -> None:
    """Write the stub, by default in its place."""
    parser = argparse.ArgumentParser(description="Write the stub of the native module.")
    parser.add_argument("--output", type=Path, default=STUB)
    parser.parse_args().output.write_text(stub(), encoding="utf-8")


if __name__ == "__main__":
    main()
