"""A page that steps through a traced packet: the source with the current line, and the headers next to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from weft.cache import UnreadableFileError, read_text
from weft.quantities.readable import format_time
from weft.report.html import html_page
from weft.switch.bmv2json import Conditional, Program
from weft.switch.coverage.sources import located
from weft.switch.debug.names import shown_name
from weft.switch.debug.register_uses import register_use, register_uses
from weft.switch.debug.replay import Moment, Replay
from weft.switch.trace import events, places
from weft.switch.trace.absorption import ABSORBED, absorbs
from weft.switch.trace.folding import folds
from weft.switch.trace.primitives import short_source
from weft.switch.trace.story import INSTANCE_TYPES, Storyteller, hidden_table
from weft.switch.trace.values import number

MOST_PACKETS = 50
MOST_STEPS = 20_000
MAX_SOURCE_BYTES = 4 << 20
_SECTION = """<section class="stepping" id="stepping">
<div class="steering"><select id="packet" aria-label="Packet"></select>
<button type="button" id="first">first</button><button type="button" id="back">← back</button>
<button type="button" id="forward">forward →</button><button type="button" id="last">last</button>
<button type="button" id="fold" hidden></button>
<input type="range" id="position" min="0" value="0" aria-label="Step"> <span id="count"></span></div>
<p id="step" role="status"></p>
<div class="panes"><div><h2 id="file"></h2><pre id="source"></pre></div>
<div><h2>Headers and metadata</h2><table><tbody id="values"></tbody></table></div></div>
</section>"""


@dataclass
class SteppedPackets:
    """Packets for a page, as they come; what is beyond its bounds is left out and counted."""

    packets: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, list[str]] = field(default_factory=dict)
    left_out: int = 0
    _steps: int = 0

    def add(self, program: Program, trace: events.PacketTrace, heading: str = "") -> None:
        """Add a packet of a program."""
        if len(self.packets) >= MOST_PACKETS or self._steps >= MOST_STEPS:
            self.left_out += 1
            return
        told = list(_Stepper(program).steps(trace))[: MOST_STEPS - self._steps]
        steps = [step for step, _, _ in told]
        self._steps += len(steps)
        for fold in folds([text for _, text, _ in told], [statement for _, _, statement in told]):
            steps[fold.first]["fold"] = {"steps": fold.end - fold.first, "text": fold.text}
        for step in steps:
            if step["file"]:
                self.files.setdefault(step["file"], _source(step["file"]))
        name = f"packet {trace.number}"
        self.packets.append({"name": f"{heading}: {name}" if heading else name, "steps": steps})

    def page(self) -> str:
        """The page."""
        more = f"; {self.left_out} more are left out" if self.left_out else ""
        data = {"figures": {}, "packets": self.packets, "files": self.files}
        subtitle = f"Step with the arrow keys, Home and End{more}"
        return html_page("Packets, step by step", "", subtitle, [_SECTION], data, scripts=["stepping.js"])


def _statement(event: events.Event) -> str:
    """Return the place of the statement that an event is; "" for other events."""
    if isinstance(event, events.Step) and isinstance(event.place, places.PrimitiveRun):
        return short_source(event.place)
    return ""


def _source(file: str) -> list[str]:
    try:
        return read_text(file, MAX_SOURCE_BYTES).splitlines()
    except (UnreadableFileError, OSError, ValueError):
        return []  # not where it was compiled: the steps say what they do


class _Stepper:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._teller = Storyteller(program)
        self._conditions = {
            name: node.source
            for pipeline in program.pipelines.values()
            for name, node in pipeline.nodes.items()
            if isinstance(node, Conditional)
        }
        self._states = {name: state for parser in program.parsers.values() for name, state in parser.states.items()}
        self._given: set[tuple[str, str]] = set()
        self._place: tuple[str, int] = ("", 0)
        self._is_absorbed = False

    def steps(self, trace: events.PacketTrace) -> Iterator[tuple[dict[str, Any], str, str]]:
        """Yield every step: text, place in the source, what changed of the values shown; then event and statement."""
        before: dict[str, str] = {}
        # From the beginning on, so that a write shows what it changes.
        cells = {use.name: number(use.before, use.width_bits) for use in register_uses(self._program, trace)}
        for moment in Replay(self._program).moments(trace.root):
            self._given |= moment.assigned
            if isinstance(moment.event, events.Step) and self._is_hidden(moment.event):
                continue
            self._find_place(moment.event)
            if isinstance(moment.event, events.Step) and isinstance(moment.event.place, places.PrimitiveRun):
                self._is_absorbed |= absorbs(moment.event.place.call)
            use = register_use(self._program, moment.event) if isinstance(moment.event, events.Step) else None
            if use is not None:
                held = use.before if use.after is None else use.after
                cells[use.name] = number(held, use.width_bits)
            now = self._values(moment) | cells
            told = self._told(moment.event)
            step = {
                "text": self._when(moment) + told,
                "file": self._place[0],
                "line": self._place[1],
                "set": {name: value for name, value in now.items() if before.get(name) != value},
                "gone": [name for name in before if name not in now],
            }
            yield step, told, _statement(moment.event)
            before = now

    def _is_hidden(self, step: events.Step) -> bool:
        # What the compiler made of statements: their primitives are steps of their own.
        if isinstance(step.place, places.ActionRun):
            return "." not in self._program.actions[step.place.action_id].name
        return hidden_table(step)

    def _find_place(self, event: events.Event) -> None:
        source: str | None = None
        if not isinstance(event, events.Step):
            self._place = "", 0
            return
        match event.place:
            case places.StateEntered(state):
                source = self._states[state].source
            case places.Selected(state):
                chosen = self._states[state].transition(event.values[0])
                source = chosen.source if chosen is not None else None
            case places.Branched(node):
                source = self._conditions[node]
            case places.TableApplied(table):
                source = self._program.tables[table].source
            case places.PrimitiveRun(call):
                source = call.source
            case places.ActionRun(action_id):
                calls = self._program.actions[action_id].primitives
                source = calls[0].source if calls else None
            case places.HeaderEmitted():
                self._place = "", 0
        if (found := located(source)) is not None:
            self._place = found

    def _values(self, moment: Moment) -> dict[str, str]:
        values: dict[str, str] = {}
        for name, header in moment.packet.headers.items():
            if not header.metadata and not header.valid:
                continue
            for each in header.type.fields:
                if header.metadata and (name, each.name) not in self._given:
                    continue
                bits = header.field_width_bits(each)
                shown = shown_name(self._program.headers[name], each.name)
                values[shown] = number(header.get(each.name) & ((1 << bits) - 1), bits, each.name)
        return values

    def _when(self, moment: Moment) -> str:
        when = f"{format_time(moment.time_ps)}: " if moment.time_ps else ""
        return when + ("" if moment.copy == "1" else f"copy {moment.copy}: ")

    def _told(self, event: events.Event) -> str:
        match event:
            case events.Received(port, _, data):
                return f"in by port {port}, {len(data)} bytes"
            case events.Copied(instance_type):
                return f"copied: {INSTANCE_TYPES.get(instance_type, instance_type)}"
            case events.Multicast(group, replicas):
                return f"multicast group {group}: {replicas} replicas"
            case events.NoCloneSession(session):
                return f"clone session {session} does not exist"
            case events.DigestSent(learn_list):
                return f"digest {self._teller.digest(learn_list)} to the controller"
            case events.Enqueued(port, queue_class):
                return f"queue of port {port}, class {queue_class}"
            case events.Trimmed(length_bytes, queue_class):
                return f"no room in the queue: trimmed to {length_bytes} bytes, class {queue_class}"
            case events.EgressStarted(port):
                return f"egress, port {port}"
            case events.Sent(port, data):
                return f"out by port {port}, {len(data)} bytes"
            case events.Dropped("program_ingress") if self._is_absorbed:
                return ABSORBED
            case events.Dropped(reason):
                return f"dropped: {reason.replace('_', ' ')}"
            case events.Step():
                return self._teller.step(event)
