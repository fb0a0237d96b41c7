"""The native switch and the oracle with the same program: both do the same with each packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from fuzz.target import Finding
from weft.switch.backend import BackendError, Digest, PacketIn, StreamEvent, SwitchBackend
from weft.switch.bmv2json import Program
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.switch.trace.events import CopyTrace

CPU_PORT = 510
_SHOWN_BYTES = 64
_CHANCE = frozenset({"modify_field_rng_uniform"})


class Twin:
    """Both switches. Raises Finding where they differ or lose a packet without counting it.

    Raises UnsupportedProgramError if either refuses the program, which is no finding.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.oracle = OracleSwitch(cpu_port=CPU_PORT)
        self.oracle.load(program)
        self.native = NativeSwitch(name="fuzz", cpu_port=CPU_PORT)
        self.native.load(program)
        self._comparable = not any(
            primitive.name in _CHANCE for action in program.actions.values() for primitive in action.primitives
        )

    def both(self, act: Callable[[SwitchBackend], Any]) -> Any:
        """Do the same to each; return what the native switch answers. Raises its BackendError if both refuse."""
        (answer, native), (_, oracle) = (_answer(act, switch) for switch in (self.native, self.oracle))
        if (native is None) is not (oracle is None):
            raise Finding(f"a request is answered {native!r} by the native switch, {oracle!r} by the oracle")
        if native is not None:
            raise native
        return answer

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """What leaves, copies in any order."""
        before = Counter(self.native.drops()), Counter(self.oracle.drops)
        expected = CopyTrace()
        native = sorted(self.native.process(port, data))
        oracle = sorted((output.port, output.data) for output in self.oracle.process(port, data, trace=expected))
        for trace in self.native.trace.take():
            _require_same("traces", [trace.root], [expected])
        native_events, oracle_events = _events(self.native), _events(self.oracle)
        oracle = sorted(oracle + [(CPU_PORT, event.data) for event in oracle_events if isinstance(event, PacketIn)])
        if self._comparable:
            _require_same("packets", native, oracle)
            fresh = [
                dict(Counter(now) - earlier)
                for now, earlier in zip((self.native.drops(), self.oracle.drops), before, strict=True)
            ]
            _require_same("drops", fresh[:1], fresh[1:])
            _require_same("digests", _digests(native_events), _digests(oracle_events))
        for name, left, drops, earlier in (
            ("native switch", native, Counter(self.native.drops()), before[0]),
            ("oracle", oracle, Counter(self.oracle.drops), before[1]),
        ):
            if not left and drops == earlier:
                raise Finding(f"the {name} lost a packet of {len(data)} bytes without counting it")
        return native

    def compare_state(self) -> None:
        """All registers and counters hold the same."""
        if not self._comparable:
            return
        for name in self.program.register_arrays:
            native, oracle = self.native.register_read_all(name), self.oracle.register_read_all(name)
            _require_same(f"register {name}", list(native), list(oracle))
        for array in self.program.counter_arrays.values():
            self._compare_counters(array.name, array.table)

    def _compare_counters(self, name: str, table: str | None) -> None:
        counts = [
            list(switch.counter_read_all(name))
            if table is None
            else [
                switch.direct_counter_read(table, entry.key, entry.priority)
                for entry in sorted(switch.table_entries(table), key=repr)
            ]
            for switch in (self.native, self.oracle)
        ]
        _require_same(f"counter {name}", *counts)


def _answer(act: Callable[[SwitchBackend], Any], switch: SwitchBackend) -> tuple[Any, BackendError | None]:
    try:
        return act(switch), None
    except BackendError as error:
        return None, error


def _events(switch: SwitchBackend) -> list[StreamEvent]:
    events = []
    while (event := switch.wait_stream_event(0)) is not None:
        events.append(event)
    return events


def _digests(events: list[StreamEvent]) -> list[Digest]:
    return [event for event in events if isinstance(event, Digest)]


def _require_same(what: str, native: list[Any], oracle: list[Any]) -> None:
    if native != oracle:
        raise Finding(f"{what} differ: native {_shown(native)}, oracle {_shown(oracle)}")


def _shown(values: list[Any]) -> str:
    listed = [
        f"{value[0]}:{value[1][:_SHOWN_BYTES].hex()}({len(value[1])})" if isinstance(value, tuple) else repr(value)
        for value in values[:8]
    ]
    return f"{len(values)} [{', '.join(listed)}]"
