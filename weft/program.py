"""The P4 program of a fabric, compiled into a run's directory."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from weft.errors import BadInputError


@dataclass(frozen=True)
class Program:
    """A compiled program's files; `p4_hash` is SHA-256 over the BMv2 JSON, which all that is compiled goes into."""

    json: Path
    p4info: Path
    p4_hash: str


def compile_program(source: Path, directory: Path) -> Program:
    """Compile a v1model program to `directory`.

    Raises:
        BadInputError: the program is missing or wrong; the message is the compiler's diagnostics.
    """
    from compiler import CompileError, compile_file

    if not source.is_file():
        raise BadInputError(f"{source}: no such P4 program")
    try:
        result = compile_file(source)
    except CompileError as error:
        raise BadInputError(str(error)) from None
    json_path = directory / f"{source.stem}.json"
    p4info_path = directory / f"{source.stem}.p4info.txtpb"
    text = result.json_text()
    json_path.write_text(text, encoding="utf-8")
    p4info_path.write_text(result.p4info_text(), encoding="utf-8")
    return Program(json_path, p4info_path, hashlib.sha256(text.encode()).hexdigest())


def compile_with_p4c(source: Path, directory: Path) -> Program:
    """Compile with p4lang's p4c-bm2-ss, which must be on PATH.

    Raises:
        BadInputError: p4c is missing or refuses the program.
    """
    program = shutil.which("p4c-bm2-ss")
    if program is None:
        raise BadInputError("p4c-bm2-ss is not on PATH")
    json_path = directory / f"{source.stem}.json"
    p4info_path = directory / f"{source.stem}.p4info.txtpb"
    result = subprocess.run(
        [program, "--std", "p4-16", "-o", str(json_path), "--p4runtime-files", str(p4info_path), str(source)],
        text=True,
        capture_output=True,
        check=False,
    )
    if result.returncode:
        raise BadInputError(f"p4c-bm2-ss refuses {source}:\n{result.stderr}")
    return Program(json_path, p4info_path, hashlib.sha256(json_path.read_bytes()).hexdigest())
