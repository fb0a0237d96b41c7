"""The switch: for any program, the machine code computes what the interpreter computes."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from fuzz.p4_grammar import CLONE_SESSIONS, MULTICAST_GROUPS, PORTS, random_program
from fuzz.switch_setup import Step, random_setup
from fuzz.twin import Twin
from weft.compiler import compile_file
from weft.switch.backend import BackendError
from weft.switch.bmv2json import Program, load_program
from weft.switch.lowering.bounds import VARIABLE as CHECKED_PIPELINES
from weft.switch.native.specialised import specialise

PACKETS = 20
_SEEDS = 6
_LATER = 0.3
_PACKETS_BETWEEN_WRITES = 4
_LENGTHS = (0, 1, 14, 40, 60, 120, 120, 300)
_CHECKED, _TRACED, _SPECIALISED = 1, 2, 4
"""Bits of a case's digest: machine code that checks its addresses; both switches' traces are compared; code for the
contents of tables, which writes between packets break."""


class ProgramsTarget:
    """A case is the text of a program that compiles; entries and packets follow from it."""

    name = "programs"
    suffix = ".p4"
    covered_paths = ("weft/switch/oracle", "weft/switch/lowering")
    timeout_s = 60.0

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="weft-fuzz-")

    def seeds(self) -> list[bytes]:
        """Random programs, always the same."""
        return [random_program(random.Random(number)).encode() for number in range(_SEEDS)]

    def mutate(self, rng: random.Random, parents: Sequence[bytes]) -> bytes:
        """Another program: those that compile are far apart."""
        return random_program(rng).encode()

    def execute(self, case: bytes) -> str:
        """Compile, set up both switches alike and run packets through them."""
        path = Path(self._folder.name) / "program.p4"
        path.write_bytes(case)
        program = load_program(compile_file(path).json_text())
        digest = sha256(case).digest()
        rng = random.Random(digest)
        left = sum(
            map(
                len,
                run(
                    _twin(program, checked=bool(digest[0] & _CHECKED)),
                    rng,
                    traced=bool(digest[0] & _TRACED),
                    specialised=bool(digest[0] & _SPECIALISED),
                ),
            )
        )
        return "packets left" if left else "nothing left"


def _twin(program: Program, *, checked: bool) -> Twin:
    before = os.environ.get(CHECKED_PIPELINES, "")
    os.environ[CHECKED_PIPELINES] = str(int(checked))
    try:
        return Twin(program)
    finally:
        os.environ[CHECKED_PIPELINES] = before


def run(
    twin: Twin, rng: random.Random, *, traced: bool = False, specialised: bool = False
) -> list[list[tuple[int, bytes]]]:
    """Set up both switches, run packets, and compare all state; what left of each packet.

    With `specialised`, packets run through code for the contents of tables, and further writes come between them.
    """
    steps = list(random_setup(rng, twin.program, PORTS, CLONE_SESSIONS, MULTICAST_GROUPS))
    later = [step for step in steps if specialised and rng.random() < _LATER]
    _write(twin, [step for step in steps if step not in later])
    if traced:
        twin.native.trace.start()
    outputs = []
    for number, (port, data) in enumerate(random_packets(rng)):
        if specialised and number % _PACKETS_BETWEEN_WRITES == 0:
            specialise([twin.native])
            _write(twin, later[:1])
            later = later[1:]
        outputs.append(twin.process(port, data))
    twin.compare_state()
    return outputs


def _write(twin: Twin, steps: Sequence[Step]) -> None:
    for step in steps:
        try:
            twin.both(step)
        except BackendError:
            continue  # an entry like one before


def random_packets(rng: random.Random) -> list[tuple[int, bytes]]:
    """Packets and the ports that they come by: anything, or mostly small numbers, which tables and parsers know."""
    made = []
    for _ in range(PACKETS):
        length = rng.choice(_LENGTHS)
        small = bytes(rng.choice((0, 0, 1, 2, 80, 0xFF)) for _ in range(length))
        made.append((rng.randrange(PORTS), rng.choice((small, rng.randbytes(length)))))
    return made
