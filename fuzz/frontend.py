"""The compiler: any text is compiled, or refused with errors that have a place; what compiles runs."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from fuzz.p4_grammar import random_program
from fuzz.programs import CASES, case_programs
from fuzz.target import Finding
from fuzz.text_mutations import mutate_text
from fuzz.twin import Twin
from weft.compiler import CompileError, CompileResult, compile_file
from weft.switch.backend import UnsupportedProgramError
from weft.switch.bmv2json import load_program

_GENERATED_SHARE = 0.25
_RUN_ONE_OF = 4
"""Machine code is generated and run for one in so many programs that compile, as it takes longer than compiling."""
_PACKETS = 6
_PLACELESS = ("the program nests too deep", "the program has no package instance 'main'")
_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class FrontendTarget:
    """A case is the text of a program."""

    name = "frontend"
    suffix = ".p4"
    covered_paths = ("weft/compiler",)
    timeout_s = 30.0

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="weft-fuzz-")
        self._path = Path(self._folder.name) / "program.p4"

    def seeds(self) -> list[bytes]:
        """Weft's conformance cases."""
        return [path.read_bytes() for path in case_programs()]

    def mutate(self, rng: random.Random, parents: Sequence[bytes]) -> bytes:
        """A mutated parent, or a random program of the grammar, itself mutated now and then."""
        if rng.random() < _GENERATED_SHARE:
            text = random_program(rng)
            if rng.random() < 0.7:
                return text.encode()
        else:
            text = parents[0].decode(errors="replace")
        return mutate_text(rng, text, parents[-1].decode(errors="replace")).encode(errors="replace")

    def execute(self, case: bytes) -> str:
        """Compile; if that succeeds load the result, and run packets through some of the programs."""
        self._path.write_bytes(case)
        try:
            result = compile_file(self._path, include_paths=[CASES])
        except CompileError as refused:
            return _refusal(refused)
        return _accepted(result, case)


def _refusal(refused: CompileError) -> str:
    errors = [each for each in refused.diagnostics if each.severity == "error"]
    if not errors:
        raise Finding("refused without an error") from refused
    for error in errors:
        if error.message.startswith("internal compiler error"):
            raise refused.__cause__ or Finding(error.message)
        if error.span is None and not error.message.startswith(_PLACELESS):
            raise Finding(f"an error without a place: {error.message}")
        error.render()
    return "refused: " + _DETAIL.sub("·", errors[0].message)[:80]


def _accepted(result: CompileResult, case: bytes) -> str:
    program = load_program(result.json_text())
    result.p4info_bytes()
    digest = sha256(case).digest()
    if digest[0] % _RUN_ONE_OF:
        return "compiled"
    try:
        twin = Twin(program)
    except UnsupportedProgramError as error:
        return "compiled, refused by the switch: " + _DETAIL.sub("·", str(error))[:80]
    rng = random.Random(digest)
    for _ in range(_PACKETS):
        twin.process(rng.randrange(4), rng.randbytes(rng.choice((0, 1, 14, 40, 120))))
    twin.compare_state()
    return "compiled and run"
