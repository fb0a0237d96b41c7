"""The P4 program of a fabric, compiled into a run's directory."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from weft.errors import BadInputError, EnvironmentLacksError, translated
from weft.paths import P4_MODULES
from weft.quantities.units import shown
from weft.scenario.places import KeyProblem
from weft.system.writing import written_whole

_NO_MACROS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Program:
    """A compiled program's files; `p4_hash` is SHA-256 over the BMv2 JSON, which all that is compiled goes into.

    `p4info_bytes` is P4Info in binary format, which takes a hundredth of the time to read; None from p4c.
    """

    source: Path

    json: Path
    p4info: Path
    p4_hash: str
    p4info_bytes: bytes | None = field(default=None, repr=False)


def compile_program(
    source: Path,
    directory: Path,
    compiler: Literal["embedded", "p4c"] = "embedded",
    macros: Mapping[str, str] = _NO_MACROS,
    key: str = "p4",
) -> Program:
    """Compile a v1model program to `directory`, with Weft's compiler or p4lang's p4c-bm2-ss, `macros` defined.

    `key` of the scenario names the program.

    Raises:
        BadInputError: the program is missing or wrong; the message is the compiler's diagnostics.
        EnvironmentLacksError: p4c-bm2-ss is not on PATH.
    """
    try:
        is_there = source.is_file()
    except (OSError, ValueError):
        is_there = False  # a name too long, or with a null character
    if not is_there:
        raise KeyProblem(key, f"{shown(str(source))}: no such P4 program")
    compile_with = _compile if compiler == "embedded" else _compile_with_p4c
    return compile_with(source, directory, macros)


def _compile(source: Path, directory: Path, macros: Mapping[str, str]) -> Program:
    from weft.compiler import CompileError, compile_artifacts

    with translated(CompileError, BadInputError):
        result = compile_artifacts(source, defines=dict(macros))
    json_path = directory / f"{source.stem}.json"
    p4info_path = directory / f"{source.stem}.p4info.txtpb"
    for path, text in ((json_path, result.json_text), (p4info_path, result.p4info_text)):
        with written_whole(path) as partial:
            partial.write_text(text, encoding="utf-8")
    p4_hash = hashlib.sha256(result.json_text.encode()).hexdigest()
    return Program(source, json_path, p4info_path, p4_hash, result.p4info_bytes)


def _modules_folder(directory: Path) -> Path:
    """Return a folder in which Weft's modules are `weft/`, as programs include them."""
    folder = directory / "modules"
    folder.mkdir(exist_ok=True)
    link = folder / "weft"
    if not link.is_symlink():
        link.symlink_to(P4_MODULES, target_is_directory=True)
    return folder


def _compile_with_p4c(source: Path, directory: Path, macros: Mapping[str, str]) -> Program:
    program = shutil.which("p4c-bm2-ss")
    if program is None:
        raise EnvironmentLacksError(
            "p4c-bm2-ss is not on PATH: install p4lang's package p4lang-p4c, or leave out --compiler p4c"
        )
    json_path = directory / f"{source.stem}.json"
    p4info_path = directory / f"{source.stem}.p4info.txtpb"
    files = ["-o", str(json_path), "--p4runtime-files", str(p4info_path), str(source)]
    defines = (f"-D{name}={value}" for name, value in macros.items())
    result = subprocess.run(
        [program, "--std", "p4-16", "-I", str(_modules_folder(directory)), *defines, *files],
        text=True,
        capture_output=True,
        check=False,
    )
    if result.returncode:
        raise BadInputError(f"p4c-bm2-ss refuses {source}:\n{result.stderr}")
    return Program(source, json_path, p4info_path, hashlib.sha256(json_path.read_bytes()).hexdigest())
