"""A packet's events as log lines with simple_switch's wording, so that its logs can be searched in the same way.

Unlike there, an entry has no handle, so a hit shows the entry's match; each packet's lines are
adjacent, written when it has left or been dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.quantities.units import PS_PER_US
from weft.switch.bmv2json import HeaderRef, Program, StackRef, Table
from weft.switch.trace import events, places
from weft.switch.trace.bmv2_words import (
    DEBUG,
    ERROR,
    TRACE,
    Said,
    copying,
    place_of,
    primitive,
    set_to,
    text_of,
)
from weft.switch.trace.values import key_text

_DAY_US = 86_400 * 10**6
_INGRESS = "Pipeline 'ingress'"
_LEAST_KEY_NAME_COLUMNS = 20


class Bmv2Log:
    """Writes packets of one program. Times are times of day; `origin_us` is the switch's time 0."""

    def __init__(self, program: Program, origin_us: int = 0) -> None:
        self.program = program
        self._origin_us = origin_us
        self._sources = {
            name: getattr(node, "source", None)
            for pipeline in program.pipelines.values()
            for name, node in pipeline.nodes.items()
        }

    def lines(self, trace: events.PacketTrace) -> Iterator[str]:
        """Yield all lines of a packet; the lines of a copy are where it was made."""
        yield from self._copy(trace.root, trace.number, Copies())

    def _copy(self, trace: events.CopyTrace, packet: int, copies: Copies) -> Iterator[str]:
        number, teller = copies.next(), _Teller(self.program, self._sources)
        for event, time_ps in zip(trace.events, trace.times_ps, strict=True):
            for level, text in teller.tell(event):
                prefix = f"[{self._time(time_ps)}] [weft] [{level}] [{packet}.{number}] [cxt 0] "
                yield prefix + text
            if isinstance(event, events.Copied):
                yield from self._copy(event.copy, packet, copies)

    def _time(self, time_ps: int) -> str:
        seconds, us = divmod((self._origin_us + time_ps // PS_PER_US) % _DAY_US, 10**6)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{us:06}"


class Copies:
    """Numbers copies of a packet, from 0 on."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> int:
        """Return the next copy's number."""
        self._count += 1
        return self._count - 1


class _Teller:
    """Words the events of one copy; tracks in which part of the switch the copy is."""

    def __init__(self, program: Program, sources: Mapping[str, str | None]) -> None:
        self._program = program
        self._sources = sources  # where each node of a pipeline stands
        self._tables = program.tables
        self._part = ""
        self._owes_ingress = False  # it was received, and the ingress pipeline has not been reported
        self._is_parsing = False
        self._state = ""  # a parser state whose select has not been reported

    def tell(self, event: events.Event) -> Iterator[Said]:
        """Yield the log texts of an event."""
        match event:
            case events.Step():
                yield from self._step(event)
            case events.Received(port):
                self._owes_ingress = True
                yield DEBUG, f"Processing packet received on port {port}"
            case events.Copied(instance_type, copy):
                yield from self._leave()
                yield from copying(instance_type, copy)
            case events.Multicast(group, replicas):
                yield from self._leave_ingress()
                yield DEBUG, "Multicast requested for packet"
                yield DEBUG, f"number of packets replicated : {replicas} for MGID: {group}"
            case events.NoCloneSession(session):
                yield DEBUG, f"Cloning packet: session {session} is unknown"
            case events.DigestSent(learn_list):
                found = self._program.learn_lists.get(learn_list)
                yield DEBUG, f"Digest '{learn_list if found is None else found.name}' to the controller"
            case events.Enqueued(port):
                yield from self._leave_ingress()
                yield DEBUG, f"Egress port is {port}"
            case events.Trimmed(length_bytes, queue_class):
                yield DEBUG, f"No room in the queue: trimmed to {length_bytes} bytes, class {queue_class}"
            case events.EgressStarted():
                yield from self._enter("Pipeline 'egress'")
            case events.Sent(port, data):
                yield from self._enter("Deparser 'deparser'")  # which may have had nothing to do
                yield from self._leave()
                yield DEBUG, f"Transmitting packet of size {len(data)} out of port {port}"
            case events.Dropped(reason):
                yield from self._leave()
                at = {"program_ingress": "ingress", "program_egress": "egress"}.get(reason)
                yield DEBUG, f"Dropping packet at the end of {at}" if at else f"Dropping packet: {reason}"

    def _enter(self, part: str) -> Iterator[Said]:
        if self._part != part:
            yield from self._leave()
            self._part = part
            self._owes_ingress &= part != _INGRESS
            yield DEBUG, f"{part}: start"

    def _leave(self) -> Iterator[Said]:
        if self._part:
            yield DEBUG, f"{self._part}: end"
        self._part = ""

    def _leave_ingress(self) -> Iterator[Said]:
        """End the ingress pipeline, which may have been empty."""
        if self._owes_ingress:
            yield from self._enter(_INGRESS)
        yield from self._leave()

    def _step(self, step: events.Step) -> Iterator[Said]:
        place = step.place
        match place:
            case (
                places.StateEntered()
                | places.Extracted()
                | places.FieldSet()
                | places.Selected()
                | places.ParserEnded()
            ):
                yield from self._enter("Parser 'parser'")
                self._is_parsing = not isinstance(place, places.ParserEnded)
                yield from self._parser_step(step)
            case places.ChecksumVerified(name):
                yield DEBUG, f"Verified checksum '{name}': {'passed' if step.values[0] else 'failed'}"
                if not step.values[0]:
                    yield ERROR, f"Checksum '{name}' is not correct"
            case places.ChecksumUpdated(name):
                yield from self._enter("Deparser 'deparser'")
                yield DEBUG, f"Updating checksum '{name}'"
            case places.HeaderEmitted(header):
                yield from self._enter("Deparser 'deparser'")
                yield DEBUG, f"Deparsing header '{header}'"
            case places.PrimitiveRun() if self._is_parsing or self._part.startswith("Deparser"):
                yield from primitive(self._program, place, step.values)
            case _:
                if not self._part.startswith("Pipeline"):
                    yield from self._enter(_INGRESS)
                yield from self._pipeline_step(step)

    def _parser_step(self, step: events.Step) -> Iterator[Said]:
        match step.place:
            case places.StateEntered(state):
                yield from self._without_switch()
                self._state = state
                yield DEBUG, f"Parser 'parser' entering state '{state}'"
            case places.Extracted(operation):
                target, at = operation.target, step.values[0]
                if isinstance(target, HeaderRef):
                    sized = "" if operation.length_bits is None else "variable-sized "
                    yield DEBUG, f"Extracting {sized}header '{target.name}'"
                elif isinstance(target, StackRef):
                    yield DEBUG, f"Extracting to header stack '{target.name}', next header is {at}"
                else:
                    yield DEBUG, f"Extracting to header union stack '{target.stack}', next header is {at}"
            case places.FieldSet(operation):
                value = set_to(operation.source, step.values[0])
                yield DEBUG, f"Parser set: setting field '{operation.target}' {value}"
            case places.Selected(state, key_bits):
                self._state = ""
                yield DEBUG, f"Parser state '{state}': key is {step.values[0]:0{(key_bits + 3) // 4}x}"
            case places.ParserEnded():
                consumed, code = step.values
                errors = {code: name for name, code in self._program.errors.items()}
                if code == self._program.errors.get("NoError", 0):
                    yield from self._without_switch()
                else:
                    yield ERROR, f"Exception while parsing: {errors.get(code, code)}"
                yield TRACE, f"Bytes parsed: {consumed}"

    def _without_switch(self) -> Iterator[Said]:
        if self._state:
            yield DEBUG, f"Parser state '{self._state}' has no switch, going to default next state"
        self._state = ""

    def _pipeline_step(self, step: events.Step) -> Iterator[Said]:
        match step.place:
            case places.Branched(name):
                source = self._sources.get(name)
                held = "true" if step.values[0] else "false"
                yield TRACE, f'{place_of(source)}Condition "{text_of(source) or name}" ({name}) is {held}'
            case places.TableApplied(name):
                yield from self._table(step, self._tables[name])
            case places.ActionRun(action_id):
                name = self._program.actions[action_id].name
                data = "".join(f"{value:x}," for value in step.values)
                yield DEBUG, f"Action entry is {name} - {data}"
                yield TRACE, f"Action {name}"
            case places.PrimitiveRun():
                yield from primitive(self._program, step.place, step.values)

    def _table(self, step: events.Step, table: Table) -> Iterator[Said]:
        yield TRACE, f"Applying table '{table.name}'"
        names, widths = [key.name for key in table.key], [key.field.width_bits for key in table.key]
        columns = max(_LEAST_KEY_NAME_COLUMNS, *map(len, names)) if names else 0
        shown = (
            f"\n* {name:<{columns}}: {value:0{(width + 7) // 8 * 2}x}"
            for name, value, width in zip(names, step.values, widths, strict=True)
        )
        yield DEBUG, "Looking up key:" + "".join(shown)
        if step.match is None:
            yield DEBUG, f"Table '{table.name}': miss"
            return
        key, priority = step.match
        yield DEBUG, f"Table '{table.name}': hit"
        yield (
            DEBUG,
            f"Match key: {key_text(key, widths, names)}" + (f", priority {priority}" if priority else ""),
        )
