"""A packet's events as nested lines of text, for logs and trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.switch.bmv2json import Conditional, HeaderRef, HeaderType, Program, StackRef, Table
from weft.switch.trace import events
from weft.switch.trace.absorption import ABSORBED, absorbs
from weft.switch.trace.folding import shortened
from weft.switch.trace.places import (
    ActionChosen,
    ActionRun,
    Branched,
    ChecksumUpdated,
    ChecksumVerified,
    Extracted,
    FieldSet,
    HeaderEmitted,
    ParserEnded,
    PrimitiveRun,
    Selected,
    StateEntered,
    TableApplied,
)
from weft.switch.trace.primitives import drops_packet, primitive_text, short_source
from weft.switch.trace.values import expression_text, field_name, key_text, number, split_key

INSTANCE_TYPES = {
    0: "normal",
    1: "clone from ingress",
    2: "clone from egress",
    4: "recirculated",
    5: "replica",
    6: "resubmitted",
}
DROP_REASONS = {
    "program_ingress": "egress_spec is the drop port at the end of ingress",
    "program_egress": "egress_spec is the drop port at the end of egress",
    "tail_drop": "no room in the queue of the egress port",
    "unknown_port": "no interface is attached to the egress port",
    "empty_multicast_group": "the multicast group is unknown or has no replicas",
    "pass_limit": "resubmitted, recirculated or cloned without end",
    "assertion": "assert() or assume() does not hold",
}


@dataclass(slots=True)
class Line:
    """A line and its children. `detail` lines are omitted from short logs; `source` is the place of a statement."""

    text: str
    style: str = ""
    detail: bool = False
    children: list[Line] = field(default_factory=list)
    source: str = ""

    def add(self, text: str, style: str = "", *, detail: bool = False, source: str = "") -> Line:
        """Append a child; returns it."""
        child = Line(text, style, detail, source=source)
        self.children.append(child)
        return child

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Line]]:
        """This line and all below it, with their depths."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class Storyteller:
    """Describes the events of one program's packets in words."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._nodes = {name: node for pipeline in program.pipelines.values() for name, node in pipeline.nodes.items()}
        self._states = {name: state for parser in program.parsers.values() for name, state in parser.states.items()}
        self._errors = {code: name for name, code in program.errors.items()}

    def packet(self, trace: events.PacketTrace) -> Line:
        """Return the whole story of a packet."""
        root = Line(f"packet {trace.number}", "bold")
        _CopyStory(self, root).add_events(trace.root)
        return root

    # ---- texts of single places

    def condition(self, name: str, holds: bool) -> str:
        """Return a condition with its result."""
        node = self._nodes[name]
        assert isinstance(node, Conditional)
        return f"if {_bare(expression_text(node.expression))}: {'true' if holds else 'false'}"

    def table(self, step: events.Step) -> str:
        """Return table, key and match."""
        assert isinstance(step.place, TableApplied)
        table = self._nodes[step.place.table]
        assert isinstance(table, Table)
        widths = [key.field.width_bits for key in table.key]
        names = [key.name for key in table.key]
        looked_up = ", ".join(
            f"{name} = {number(value, width, name)}"
            for name, value, width in zip(names, step.values, widths, strict=True)
        )
        if step.match is None:
            found = "miss, default action" if table.key else "default action"
        else:
            key, priority = step.match
            found = f"hit {key_text(key, widths, names)}" + (f" (priority {priority})" if priority else "")
        return f"table {table.name}: {looked_up + ' → ' if looked_up else ''}{found}"

    def action(self, step: events.Step) -> str:
        """Action and its arguments."""
        assert isinstance(step.place, ActionRun)
        action = self.program.actions[step.place.action_id]
        arguments = ", ".join(
            f"{parameter.name} = {number(value, parameter.width_bits, parameter.name)}"
            for parameter, value in zip(action.parameters, step.values, strict=True)
        )
        return f"action {action.name}({arguments})"

    def header(self, step: events.Step) -> str:
        """An extracted header and its fields."""
        assert isinstance(step.place, Extracted)
        target = step.place.operation.target
        if isinstance(target, HeaderRef):
            name, header_type = target.name, self.program.headers[target.name].type
        elif isinstance(target, StackRef):
            name = f"{target.name}[{step.values[0]}]"
            header_type = self.program.header_stacks[target.name].type
        else:
            name = f"{target.stack}[{step.values[0]}].{target.member}"
            union = self.program.header_union_stacks[target.stack].type
            header_type = union.members[union.member_index(target.member)][1]
        found = [f"{key} = {value}" for key, value in header_fields(header_type, step.data).items()]
        fields = ", ".join(shortened(found))
        return f"extract {name}: {fields or 'no fields'}"

    def select(self, step: events.Step) -> str:
        """Return the key of a state's select."""
        assert isinstance(step.place, Selected)
        key = self._states[step.place.state].transition_key
        parts = [
            f"{expression_text(item)} = {number(value, item.width_bits, expression_text(item))}"
            for item, value in zip(key, split_key(step.values[0], key), strict=True)
        ]
        return f"select {', '.join(parts)}"

    def parser_end(self, step: events.Step) -> tuple[str, str]:
        """Return how parsing ended, and the style."""
        consumed, code = step.values
        name = self._errors.get(code, f"error {code}")
        if code == self.program.errors.get("NoError", 0):
            return f"accept: {consumed} bytes parsed", ""
        return f"parser error {name} at byte {consumed}", "red"

    def step(self, step: events.Step) -> str:
        """Return any step in a line, without context."""
        match step.place:
            case StateEntered(state):
                return f"state {state}"
            case Extracted():
                return self.header(step)
            case FieldSet(operation):
                target = operation.target
                value = number(step.values[0], target.width_bits, target.field)
                return f"{expression_text(target)} = {value}"
            case Selected():
                return self.select(step)
            case ParserEnded():
                return self.parser_end(step)[0]
            case ChecksumVerified(name):
                return f"checksum {name} is {'right' if step.values[0] else 'wrong'}"
            case ChecksumUpdated(name, target):
                return f"checksum {name}: {field_name(str(target))} = {step.values[0]:#x}"
            case Branched(node):
                return self.condition(node, bool(step.values[0]))
            case TableApplied():
                return self.table(step)
            case ActionChosen(table):
                return f"goes on by the action of {table}"
            case ActionRun():
                return self.action(step)
            case PrimitiveRun():
                return primitive_text(step.place, step.values)
            case HeaderEmitted(header):
                return f"emit {header}"

    def digest(self, learn_list: int) -> str:
        """The name of a digest."""
        found = self.program.learn_lists.get(learn_list)
        return found.name if found is not None else str(learn_list)


def header_fields(header_type: HeaderType, data: bytes) -> dict[str, str]:
    """Return the fields of a header on the wire as text, by name."""
    left = len(data) * 8
    variable_bits = left - sum(item.width_bits for item in header_type.fields if not item.variable)
    bits = int.from_bytes(data, "big")
    fields = {}
    for item in header_type.fields:
        width = variable_bits if item.variable else item.width_bits
        left -= width
        value = bits >> left & ((1 << width) - 1)
        if not item.name.startswith("_padding"):
            fields[item.name] = f"0x{value:x}" if item.variable else number(value, width, item.name)
    return fields


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def hidden_table(step: events.Step) -> bool:
    """Return whether a step is a table that the compiler made for a direct call of an action."""
    return isinstance(step.place, TableApplied) and not step.values and step.place.table.startswith("tbl_")


class _CopyStory:
    """Turns the events of one copy into lines below `root`."""

    def __init__(self, teller: Storyteller, root: Line) -> None:
        self._teller = teller
        self._root = root
        self._section = root  # parser, ingress, queue, egress, deparser
        self._holder = root  # what primitives belong to: action, parser state, deparser
        self._table: Line | None = None  # whose action comes next
        self._last_drop = ""
        self._is_absorbed = False
        self._waiting_since_ps: int | None = None

    def add_events(self, trace: events.CopyTrace) -> None:
        """Add the lines."""
        for event, time_ps in zip(trace.events, trace.times_ps, strict=True):
            if isinstance(event, events.Step):
                self._step(event)
            else:
                self._own(event, time_ps)

    def _begin(self, name: str) -> None:
        self._section = self._holder = self._root.add(name, "bold")
        self._table = None

    def _own(self, event: events.Event, time_ps: int) -> None:
        match event:
            case events.Received(port, instance_type, data):
                how = "" if instance_type == 0 else f" ({INSTANCE_TYPES.get(instance_type, instance_type)})"
                self._root.text += f": in by port {port}, {len(data)} bytes{how}"
            case events.Copied(instance_type, copy):
                name = INSTANCE_TYPES.get(instance_type, str(instance_type))
                _CopyStory(self._teller, self._root.add(name, "bold cyan")).add_events(copy)
            case events.Multicast(group, replicas):
                self._root.add(f"multicast group {group}: {replicas} replicas", "cyan")
            case events.NoCloneSession(session):
                self._root.add(f"clone session {session} does not exist: no clone", "red")
            case events.DigestSent(learn_list):
                self._root.add(f"digest {self._teller.digest(learn_list)} to the controller", "cyan")
            case events.Enqueued(port, queue_class):
                self._waiting_since_ps = time_ps
                self._root.add(f"queue of port {port}, class {queue_class}", "bold")
            case events.Trimmed(length_bytes, queue_class):
                self._root.add(f"no room in the queue: trimmed to {length_bytes} bytes, class {queue_class}", "bold")
            case events.EgressStarted(port, replication_id):
                self._begin(f"egress, port {port}{f', replica {replication_id}' if replication_id else ''}")
                if self._waiting_since_ps is not None and time_ps > self._waiting_since_ps:
                    waited_ns = (time_ps - self._waiting_since_ps) / 1000
                    self._section.text += f" (waited {waited_ns:,.0f} ns)"
            case events.Sent(port, data):
                self._root.add(f"out by port {port}, {len(data)} bytes", "bold green")
            case events.Dropped("program_ingress") if self._is_absorbed:
                self._root.add(f"{ABSORBED}; {self._last_drop}", "bold green")
            case events.Dropped(reason):
                why = DROP_REASONS.get(reason, reason.replace("_", " "))
                at = f"; set by {self._last_drop}" if self._last_drop and reason.startswith("program") else ""
                self._root.add(f"dropped ({reason}): {why}{at}", "bold red")

    def _step(self, step: events.Step) -> None:
        place, text = step.place, self._teller.step(step)
        match place:
            case StateEntered() | ParserEnded() if not self._section.text.startswith("parser"):
                self._begin("parser")
            case ChecksumUpdated() | HeaderEmitted() if not self._section.text.startswith("deparser"):
                self._begin("deparser")
        match place:
            case StateEntered():
                self._holder = self._section.add(text)
            case Extracted() | Selected():
                self._holder.add(text)
            case FieldSet():
                self._holder.add(text, detail=True)
            case ParserEnded():
                self._section.add(text, self._teller.parser_end(step)[1])
                self._begin("ingress")
            case ChecksumVerified():
                self._section.add(text, "" if step.values[0] else "red")
            case Branched():
                self._section.add(text)
            case TableApplied():
                missed = bool(step.values) and step.match is None
                self._table = None if hidden_table(step) else self._section.add(text, "yellow" if missed else "")
            case ActionRun():
                holder = self._table if self._table is not None else self._section
                self._holder = holder if self._is_statement(place) else holder.add(text)
                self._table = None
            case PrimitiveRun():
                self._holder.add(text, detail=True, source=short_source(place))
                if drops_packet(place):
                    self._last_drop = short_source(place) or text
                    self._is_absorbed = absorbs(place.call)
            case ChecksumUpdated():
                self._section.add(text, detail=True)
            case HeaderEmitted(header):
                # the section's heading names them all
                self._section.text += f"{':' if self._section.text == 'deparser' else ','} {header}"

    def _is_statement(self, place: ActionRun) -> bool:
        """Return whether the compiler made an action from statements of an apply block: it has no control's name."""
        return not place.parameter_bits and "." not in self._teller.program.actions[place.action_id].name
