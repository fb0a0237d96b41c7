"""Output of `weft switch` for each packet: log lines, or the trees of --trace."""

from __future__ import annotations

import logging

from weft.switch.cli.logs import TRACE
from weft.switch.native import NativeSwitch
from weft.switch.native.trace import MANY_PACKETS
from weft.switch.trace.events import Copied, CopyTrace, PacketTrace, Received, Sent
from weft.switch.trace.show import log_lines, print_tree
from weft.switch.trace.story import Storyteller

_LOGGER = logging.getLogger(__name__)


class PacketLog:
    """Logs every packet of `switch` once it has left or was dropped.

    Level debug logs each step, trace also every write; `dump_bytes` of each packet received or sent are logged at info.
    The switch must not run a program yet.
    """

    def __init__(self, switch: NativeSwitch, *, with_steps: bool, dump_bytes: int = 0) -> None:
        self._switch = switch
        self._with_steps = with_steps
        self._dump_bytes = dump_bytes
        self._teller: Storyteller | None = None
        self._missed = 0
        switch.trace.from_first = MANY_PACKETS
        switch.trace.with_steps = with_steps

    def write(self) -> None:
        """Log the packets since the last call."""
        program = self._switch.program
        if program is None:
            return
        if self._teller is None or self._teller.program is not program:
            self._teller = Storyteller(program)
        for trace in self._switch.trace.take():
            if self._dump_bytes:
                self._dump(trace.number, trace.root)
            if self._with_steps:
                self._log(self._teller, trace)
        missed = self._switch.trace.packets_missed - self._missed
        if missed:
            self._missed += missed
            _LOGGER.warning("%d packets came too fast to be logged", missed)

    def _log(self, teller: Storyteller, trace: PacketTrace) -> None:
        for line, detail in log_lines(teller.packet(trace)):
            _LOGGER.log(TRACE if detail else logging.DEBUG, "[%d] %s", trace.number, line)

    def _dump(self, number: int, trace: CopyTrace) -> None:
        for event in trace.events:
            if isinstance(event, Received | Sent):
                direction = "in by" if isinstance(event, Received) else "out by"
                data = event.data[: self._dump_bytes].hex(" ")
                _LOGGER.info("[%d] %s port %d, %d bytes: %s", number, direction, event.port, len(event.data), data)
            elif isinstance(event, Copied):
                self._dump(number, event.copy)


class PacketTrees:
    """Prints the steps of each of the next `packets` of `switch`, once the packet has left or was dropped.

    The switch must not run a program yet; after the last packet it continues with plain code.
    """

    def __init__(self, switch: NativeSwitch, packets: int) -> None:
        self._switch = switch
        switch.trace.from_first = packets

    def write(self) -> None:
        """Print the packets since the last call."""
        trace, program = self._switch.trace, self._switch.program
        if program is None or not trace.from_first:
            return
        for packet in trace.take():
            print_tree(Storyteller(program).packet(packet), ended=True)
            trace.from_first -= 1
        if not trace.from_first:
            trace.stop()
