"""Traces packets through switches while a scenario runs in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weft.clocks.virtual.lab import VirtualLab
from weft.errors import BadInputError, translated
from weft.quantities.readable import format_time
from weft.run.attached import virtual_lab
from weft.run.fabric import Fabric
from weft.switch.bmv2json import Program
from weft.switch.debug.condition_tokens import ConditionError
from weft.switch.debug.conditions import Condition
from weft.switch.native import NativeSwitch
from weft.switch.native.trace import LAST_PS
from weft.switch.trace.events import PacketTrace
from weft.topologies import TopologyError


@dataclass(frozen=True)
class TracedPacket:
    """The trace of a packet that matches the condition, with its switch and arrival time."""

    switch: str
    received_ps: int
    trace: PacketTrace
    program: Program

    @property
    def heading(self) -> str:
        """Time and switch, in words."""
        return f"{format_time(self.received_ps)}, {self.switch}"


@dataclass
class TracedSwitch:
    """A switch of a run, and the condition on packets as its program understands it."""

    name: str
    native: NativeSwitch
    program: Program
    condition: Condition | None
    is_called: bool = False


def traced_switch(lab: VirtualLab, name: str, when: str | None) -> TracedSwitch:
    """Return a switch. Raises BadInputError if it is unknown, or the condition does not fit its program."""
    with translated(TopologyError, BadInputError, place="--switch"):
        native = lab.native_switch(name)
    program = native.program
    assert program is not None
    try:
        condition = None if when is None else Condition(when, program)
    except ConditionError as error:
        assert when is not None
        raise BadInputError(f"{error.shown(when)}", place="--when") from None
    return TracedSwitch(name, native, program, condition)


class PacketTraces:
    """Shows packets when they leave switches, if they match a condition, up to a number of packets.

    Meanwhile the switches run instrumented code, which is slower but takes no emulated time.
    """

    def __init__(
        self,
        switches: Sequence[str],
        show: Callable[[TracedPacket], None],
        packets: int,
        when: str | None = None,
        port: int | None = None,
        during_ps: tuple[int, int] = (0, LAST_PS),
        only: Mapping[str, Sequence[int]] | None = None,
        *,
        ends_run: bool = False,
    ) -> None:
        """Trace packets of `switches`; `only` some, by their numbers from a search with the same port and interval.

        `ends_run`: the run ends with RunEndedEarlyError once so many packets were shown.
        """
        self._names = list(dict.fromkeys(switches))
        self._only = only
        self._ends_run = ends_run
        self._lab: VirtualLab | None = None
        self._show = show
        self._left = packets
        self._when = when
        self._port = port
        self._during_ps = during_ps
        self._switches: list[TracedSwitch] = []
        self.others = 0
        """Packets that did not match the condition."""
        self.missed = 0
        """Packets that were not examined because too many arrived at once."""

    def begin(self, fabric: Fabric) -> None:
        """See Attached. Raises BadInputError for an unknown switch, or a condition that does not fit its program."""
        lab = virtual_lab(fabric, "--switch")
        self._lab = lab
        for name in self._names:
            switch = traced_switch(lab, name, self._when)
            self._switches.append(switch)
        for switch in self._switches:
            self._start(lab, switch)

    def _start(self, lab: VirtualLab, switch: TracedSwitch) -> None:
        def look() -> None:
            switch.is_called = False
            self._look(switch)

        def ended() -> None:
            if not switch.is_called:
                switch.is_called = True
                lab.loop.wake(look)

        # Whether a packet matches the condition is known only when it has left.
        wanted = self._left if switch.condition is None else None
        only = () if self._only is None else self._only[switch.name]
        switch.native.trace.start(wanted, self._port, ended=ended, during_ps=self._during_ps, only=only)

    def _look(self, switch: TracedSwitch, *, unfinished: bool = False) -> None:
        for trace in switch.native.trace.take(unfinished=unfinished):
            if switch.condition is not None and not switch.condition.holds(trace):
                self.others += 1
            elif self._left:
                self._left -= 1
                self._show(TracedPacket(switch.name, trace.root.times_ps[0], trace, switch.program))
        if not self._left:
            self._stop()
            if self._ends_run and self._lab is not None:
                self._lab.loop.end_early()

    def _stop(self) -> None:
        for each in self._switches:
            each.native.trace.stop()

    def end(self, _fabric: Fabric) -> None:
        """See Attached. Packets still in switches are examined, too."""
        for each in self._switches:
            self._look(each, unfinished=True)
            self.missed += each.native.trace.packets_missed
        self._stop()
