"""Prints and writes the packets of `weft trace`, from any source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.errors import CheckFailedError
from weft.quantities.readable import counted
from weft.switch.bmv2json import Program
from weft.switch.daemon.trace_service import Unseen, WatchedPacket, watched_packet
from weft.switch.trace.events import PacketTrace
from weft.switch.trace.show import print_tree
from weft.switch.trace.story import Storyteller

if TYPE_CHECKING:
    from weft.report.stepping import SteppedPackets


class TraceOutput:
    """Trees or JSON on the terminal, and maybe a page to step through; counts what was shown and what was not."""

    def __init__(self, page: Path | None, *, print_json: bool, with_registers: bool) -> None:
        self._page = page
        self._print_json = print_json
        self.with_registers = with_registers
        self.unseen = Unseen()
        self._shown = 0
        self._stepped = _new_steps() if page is not None else None

    def show_trace(self, program: Program, trace: PacketTrace, heading: str = "") -> None:
        """Show a packet of this process; `heading` says when and where."""
        if self._stepped is not None:
            self._stepped.add(program, trace, heading)
        packet = watched_packet(Storyteller(program), trace, with_registers=self.with_registers)
        if heading:
            packet.story.text = f"{heading}: {packet.story.text}"
        self.show(packet)

    def show(self, packet: WatchedPacket) -> None:
        """Print a packet."""
        self._shown += 1
        if self._print_json:
            for event in packet.events:
                click.echo(json.dumps(event))
        else:
            print_tree(packet.story, ended=packet.ended)

    def finish(self, nothing: str) -> None:
        """Say what was not shown, and write the page.

        CheckFailedError: no packet was shown, for the reason `nothing` or because of the condition.
        """
        unseen = self.unseen
        if unseen.missed:
            click.echo(f"{counted(unseen.missed, 'packet')} not looked at: too many came at once", err=True)
        if unseen.not_examined:
            click.echo(
                f"{counted(unseen.not_examined, 'more packet')} may match --when and were not looked at: it compares "
                f"fields with each other, or fields that the program assigns, which takes a trace of each packet; "
                f"--from, --until and --port narrow the search",
                err=True,
            )
        if self._shown == 0:
            if unseen.others:
                nothing = f"no packet matches --when; {counted(unseen.others, 'packet')} did not match"
            raise CheckFailedError(nothing)
        self.write_page()

    def write_page(self) -> None:
        """Write the page, if one was asked for and there is something to step through."""
        if self._shown and self._stepped is not None and self._page is not None:
            from weft.report.html import write_page

            click.echo(f"wrote {write_page(self._stepped.page(), self._page)}", err=True)


def _new_steps() -> SteppedPackets:
    from weft.report.stepping import SteppedPackets

    return SteppedPackets()
