"""Finds the packets that match a condition while a scenario runs in virtual time; a second run can trace them.

Whether a packet matches is known only when it has left, and a record of everything until then takes longer than the run
itself. Runs repeat exactly, so a first one only looks, in machine code, and a second one traces what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.clocks.virtual.lab import VirtualLab
from weft.errors import BadInputError
from weft.run.attached import virtual_lab
from weft.run.fabric import Fabric
from weft.run.packet_traces import TracedSwitch, traced_switch
from weft.switch.debug.searches import search_for
from weft.switch.native.trace import LAST_PS, MOST_PERHAPS


@dataclass
class FoundPackets:
    """Packets to trace, by switch: their numbers there, ascending.

    `others` do not match; `not_examined` match perhaps, but were too many to be traced. `unfit` are the switches with a
    program that lacks a name of the condition.
    """

    by_switch: dict[str, list[int]] = field(default_factory=dict)
    others: int = 0
    not_examined: int = 0
    unfit: list[str] = field(default_factory=list)


class PacketSearch:
    """Looks for the first `packets` packets that match a condition in switches. See `Attached`."""

    def __init__(
        self,
        switches: Sequence[str],
        packets: int,
        when: str,
        port: int | None = None,
        during_ps: tuple[int, int] = (0, LAST_PS),
        *,
        skips_unfit: bool = False,
        ends_run: bool = False,
    ) -> None:
        """Search `switches`.

        `skips_unfit`: leave out switches with a program that does not fit the condition, unless that is all of them.
        `ends_run`: the run ends with RunEndedEarlyError once the packets are found.
        """
        self._names = list(dict.fromkeys(switches))
        self._packets = packets
        self._when = when
        self._port = port
        self._during_ps = during_ps
        self._skips_unfit = skips_unfit
        self._ends_run = ends_run
        self._switches: list[TracedSwitch] = []
        self._is_closed = False
        self._is_called = False
        self.found = FoundPackets()

    def begin(self, fabric: Fabric) -> None:
        """See Attached. Raises BadInputError for an unknown switch, or a condition that does not fit its program."""
        lab = virtual_lab(fabric, "--switch")
        refused: BadInputError | None = None
        for name in self._names:
            try:
                self._switches.append(traced_switch(lab, name, self._when))
            except BadInputError as error:
                if not self._skips_unfit:
                    raise
                refused = error
                self.found.unfit.append(name)
        if refused is not None and not self._switches:
            raise refused
        for switch in self._switches:
            assert switch.condition is not None
            search = search_for(switch.condition, switch.program)

            def changed() -> None:
                if not self._is_called:
                    self._is_called = True
                    lab.loop.wake(lambda: self._look(lab))

            switch.native.trace.search(search, self._packets, changed, self._port, self._during_ps)

    def _look(self, lab: VirtualLab) -> None:
        self._is_called = False
        results = [each.native.trace.search_results() for each in self._switches]
        certain = sum(packet.is_certain for each in results for packet in each.found)
        if certain < self._packets:
            return
        if not self._is_closed:
            # Packets that arrive later come after the ones that are wanted.
            self._is_closed = True
            for switch in self._switches:
                switch.native.trace.close_search()
        if self._ends_run and all(switch.native.trace.search_results().is_over for switch in self._switches):
            self._collect()
            lab.loop.end_early()

    def end(self, _fabric: Fabric) -> None:
        """See Attached. Packets still in switches are decided as they are."""
        self._collect()

    def _collect(self) -> None:
        found: list[tuple[int, int, int, bool]] = []
        for number, switch in enumerate(self._switches):
            results = switch.native.trace.search_results(finish=True)
            switch.native.trace.stop()
            found += ((each.received_ps, number, each.arrival, each.is_certain) for each in results.found)
            self.found.not_examined += results.not_kept
            self.found.others += results.looked_at - results.not_kept - len(results.found)
        certain = perhaps = 0
        for _, number, arrival, is_certain in sorted(found):
            if certain == self._packets:
                break
            if not is_certain and perhaps == MOST_PERHAPS:
                self.found.not_examined += 1
                continue
            self.found.by_switch.setdefault(self._switches[number].name, []).append(arrival)
            certain += is_certain
            perhaps += not is_certain
