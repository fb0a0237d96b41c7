"""Native switch and oracle report the same for every packet of p4c's test cases (in the directory WEFT_STF_DIR)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.compiler import CompileError, compile_file
from weft.switch.backend import BackendError
from weft.switch.bmv2json import Bmv2JsonError, Program, load_program
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.switch.stf.cases import Case, architecture, find_cases
from weft.switch.stf.errors import StfError
from weft.switch.stf.parser import parse_file
from weft.switch.stf.script import run_script
from weft.switch.stf.target import CPU_PORT, Target
from weft.switch.trace.events import CopyTrace, PacketTrace
from weft.switch.trace.show import json_events, log_lines
from weft.switch.trace.story import Storyteller

DIRECTORY = os.environ.get("WEFT_STF_DIR")
CASES = [case for case in find_cases(Path(DIRECTORY)) if architecture(case.program) == "v1model"] if DIRECTORY else []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script.stem)
def test_both_switches_report_the_same(case: Case) -> None:
    try:
        program = load_program(compile_file(case.program).json_text())
        native = _native(case, program)
        oracle = _oracle(case, program)
    except (CompileError, Bmv2JsonError, BackendError, StfError) as error:
        pytest.skip(str(error)[:100])
    if "random" in case.script.stem:
        pytest.skip("random numbers differ")
    assert native == oracle
    for number, trace in enumerate(native):
        packet = PacketTrace(number, trace)
        assert all(text for text, _ in log_lines(Storyteller(program).packet(packet)))
        assert len(list(json_events(Storyteller(program), packet))) >= len(trace.events)


def _native(case: Case, program: Program) -> list[CopyTrace]:
    switch = NativeSwitch(cpu_port=CPU_PORT)
    switch.load(program)
    switch.trace.start()
    traces: list[CopyTrace] = []

    def process(port: int, data: bytes) -> list[tuple[int, bytes]]:
        outputs = switch.process(port, data)
        traces.extend(trace.root for trace in switch.trace.take(unfinished=True))
        return outputs

    run_script(parse_file(case.script), Target(switch, process), program)
    return traces


def _oracle(case: Case, program: Program) -> list[CopyTrace]:
    switch = OracleSwitch(cpu_port=CPU_PORT)
    switch.load(program)
    traces: list[CopyTrace] = []

    def process(port: int, data: bytes) -> list[tuple[int, bytes]]:
        traces.append(CopyTrace())
        return [(output.port, output.data) for output in switch.process(port, data, trace=traces[-1])]

    run_script(parse_file(case.script), Target(switch, process), program)
    return traces
