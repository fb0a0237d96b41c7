"""Generated programs: the native switch does what the oracle does, and p4c means by them what our compiler does."""

from __future__ import annotations

import random
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from fuzz.p4_grammar import CLONE_SESSIONS, MULTICAST_GROUPS, PORTS, random_program
from fuzz.switch_programs import random_packets
from fuzz.switch_setup import Step, random_setup
from weft.compiler import compile_file
from weft.switch.backend import BackendError, PacketIn
from weft.switch.bmv2json import Program, load_program
from weft.switch.oracle import OracleSwitch

PROGRAMS_OF_P4C = 12
P4C = "p4c-bm2-ss"


def _outputs(switch: OracleSwitch, port: int, data: bytes) -> list[tuple[int, bytes]]:
    left = [(output.port, output.data) for output in switch.process(port, data)]
    while (event := switch.wait_stream_event(0)) is not None:
        if isinstance(event, PacketIn):
            left.append((-1, event.data))
    return sorted(left)


@pytest.mark.reference
@pytest.mark.skipif(shutil.which(P4C) is None, reason=f"{P4C} is not on PATH")
@pytest.mark.parametrize("number", range(PROGRAMS_OF_P4C))
def test_p4c_means_the_same(number: int, tmp_path: Path) -> None:
    source, theirs = tmp_path / "program.p4", tmp_path / "theirs.json"
    source.write_text(random_program(random.Random(number), for_loops=False))
    subprocess.run([P4C, "--std", "p4-16", "-o", theirs, source], check=True, capture_output=True)
    ours = load_program(compile_file(source).json_text())
    steps = list(random_setup(random.Random(number), ours, PORTS, CLONE_SESSIONS, MULTICAST_GROUPS))
    switches = [_switch(program, steps) for program in (ours, load_program(theirs.read_text()))]
    for port, data in random_packets(random.Random(number)):
        found, expected = (_outputs(switch, port, data) for switch in switches)
        assert found == expected, data.hex()
    for name in switches[1].objects.counters:
        assert switches[0].counter_read_all(name) == switches[1].counter_read_all(name)
    for name in switches[1].objects.registers:
        assert switches[0].register_read_all(name) == switches[1].register_read_all(name)


def _switch(program: Program, steps: list[Step]) -> OracleSwitch:
    switch = OracleSwitch()
    switch.load(program)
    for step in steps:
        with suppress(BackendError):  # an entry like one before
            step(switch)
    return switch
