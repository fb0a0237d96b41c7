"""Runs a case on the native switch and the oracle at once, with random packets between the script's own."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from weft.cache import garbage_left_to_parent
from weft.compiler import CompileError, compile_file
from weft.switch.backend import BackendError, SwitchBackend, TableEntry
from weft.switch.bmv2json import Program, load_program
from weft.switch.stf.cases import Case
from weft.switch.stf.parser import parse_file
from weft.switch.stf.script import run_script
from weft.switch.stf.target import CPU_PORT, Target, make_target

VARIANTS_PER_PACKET = 6
TIMEOUT_S = 120
_FORK = multiprocessing.get_context("fork")


class _Both:
    """The control interface of two switches as one: every call goes to both, results must be equal."""

    def __init__(self, first: SwitchBackend, second: SwitchBackend) -> None:
        self._switches = first, second

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            results = []
            for switch in self._switches:
                try:
                    results.append(getattr(switch, name)(*arguments))
                except BackendError as error:
                    results.append(error)
            first, second = results
            assert type(first) is type(second), (name, arguments, first, second)
            if isinstance(first, BackendError):
                raise first
            assert first == second, (name, arguments, first, second)
            return first

        return call

    def table_entries(self, table: str) -> list[TableEntry]:
        """Entries come in no particular order."""
        first, second = (sorted(each.table_entries(table), key=repr) for each in self._switches)
        assert first == second, (table, first, second)
        return first


def differences(case: Case) -> str | None:
    """How the switches differ; None if they do not, or if neither accepts the case.

    Runs in a process of its own, so that a crash is a difference.
    """
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_compare_and_send, args=(case, sender), daemon=True)
    with garbage_left_to_parent():
        process.start()
    sender.close()
    try:
        if not receiver.poll(TIMEOUT_S):
            process.kill()
            return f"no outcome within {TIMEOUT_S} s"
        found: str | None = receiver.recv()
        return found
    except EOFError:
        process.join()
        return f"the process ended with exit code {process.exitcode}"
    finally:
        receiver.close()
        process.join()


def _compare_and_send(case: Case, sender: Connection) -> None:
    os.environ["WEFT_CHECKED_PIPELINES"] = "1"
    try:
        sender.send(_compare(case))
    except AssertionError as error:
        sender.send(str(error)[:2000])
    sender.close()


def _compare(case: Case) -> str | None:
    try:
        program = load_program(compile_file(case.program).json_text())
    except CompileError:
        return None
    native, oracle = make_target("native", program), make_target("oracle", program)
    choose = random.Random(case.name)
    comparable = not _draws_lots(program)

    def same(port: int, data: bytes) -> list[tuple[int, bytes]]:
        left = native.process(port, data)
        expected = oracle.process(port, data)
        if comparable:
            assert sorted(left) == sorted(expected), (port, data.hex(), left, expected)
        return left

    def process(port: int, data: bytes) -> list[tuple[int, bytes]]:
        for _ in range(VARIANTS_PER_PACKET):
            same(choose.choice((port, port, 0, CPU_PORT)), _variant(choose, data))
        return same(port, data)

    both = Target(_Both(native.backend, oracle.backend), process)  # type: ignore[arg-type]
    run_script(parse_file(case.script), both, program)  # another test checks that it passes
    return _state_differences(native.backend, oracle.backend, program) if comparable else None


def _variant(choose: random.Random, data: bytes) -> bytes:
    """Some bytes changed, or the packet cut, or grown."""
    changed = bytearray(data)
    for _ in range(choose.randrange(4)):
        if changed:
            changed[choose.randrange(len(changed))] = choose.choice((0, 1, 255, choose.randrange(256)))
    match choose.randrange(3):
        case 0:
            del changed[choose.randrange(len(changed) + 1) :]
        case 1:
            changed += choose.randbytes(choose.randrange(80))
    return bytes(changed)


def _draws_lots(program: Program) -> bool:
    primitives = (call.name for action in program.actions.values() for call in action.primitives)
    return "modify_field_rng_uniform" in primitives or any(
        calculation.algorithm == "random" for calculation in program.calculations.values()
    )


def _state_differences(native: Any, oracle: Any, program: Program) -> str | None:
    drops = {reason: count for reason, count in native.drops().items() if count}
    assert drops == dict(oracle.drops), (drops, oracle.drops)
    for name in program.register_arrays:
        cells = [list(switch.register_read_all(name)) for switch in (native, oracle)]
        assert cells[0] == cells[1], f"register {name}"
    for name, array in program.counter_arrays.items():
        if array.table is None:
            counts = [list(switch.counter_read_all(name)) for switch in (native, oracle)]
            assert counts[0] == counts[1], f"counter {name}"
    return None
