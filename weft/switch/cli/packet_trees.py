"""The trees that `weft switch --trace` prints."""

from __future__ import annotations

from weft.switch.native import NativeSwitch
from weft.switch.trace.show import print_tree
from weft.switch.trace.story import Storyteller


class PacketTrees:
    """Prints what each of the next `packets` of `switch` meets, once it has left or was dropped.

    The switch must not run a program yet; after the last packet it goes on in plain code.
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
