"""Shows a packet's story as a tree on a terminal or as log lines, and its events as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from weft.switch.trace.events import Copied, CopyTrace, PacketTrace, Received, Sent, Step
from weft.switch.trace.folding import folds
from weft.switch.trace.story import Line, Storyteller

WIDE = 10_000


def tree(story: Line) -> Tree:
    """Return a story as a tree for rich's console."""
    return _grow(Tree(_label(story)), story)


def print_tree(story: Line, *, ended: bool) -> None:
    """Print a packet's story to stdout. Long lines are wrapped only on a terminal."""
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=WIDE)
    console.print(tree(story))
    if not ended:
        console.print("(still under way)", style="yellow")
    sys.stdout.flush()


def _grow(into: Tree, line: Line) -> Tree:
    for child in folded(line.children):
        _grow(into.add(_label(child)), child)
    return into


def folded(lines: Sequence[Line]) -> list[Line]:
    """Return lines with the steps that a program repeats for each lane as one."""
    shown, done = [], 0
    for fold in folds([line.text for line in lines], ["" if line.children else line.source for line in lines]):
        shown += [*lines[done : fold.first], Line(f"{fold.text}   (--json shows each)", detail=True)]
        done = fold.end
    return [*shown, *lines[done:]]


def _label(line: Line) -> Text:
    return Text(line.text, style=line.style or ("dim" if line.detail else ""))


def log_lines(story: Line) -> Iterator[tuple[str, bool]]:
    """Yield indented lines, and whether each is a detail."""
    for depth, line in story.walk():
        yield "  " * depth + line.text, line.detail


def json_events(teller: Storyteller, trace: PacketTrace) -> Iterator[dict[str, Any]]:
    """Yield an object per event: packet, copy ("1", its first copy "1.1"), time, kind and the event's data."""
    yield from _copy_events(teller, trace.number, "1", trace.root)


def _copy_events(teller: Storyteller, packet: int, copy: str, trace: CopyTrace) -> Iterator[dict[str, Any]]:
    copies = 0
    for event, time_ps in zip(trace.events, trace.times_ps, strict=True):
        base = {"packet": packet, "copy": copy, "time_ps": time_ps}
        if isinstance(event, Copied):
            copies += 1
            child = f"{copy}.{copies}"
            yield base | {"event": "copied", "to": child, "instance_type": event.instance_type}
            yield from _copy_events(teller, packet, child, event.copy)
        elif isinstance(event, Step):
            yield base | {"event": _snake(type(event.place).__name__), **_step(teller, event)}
        else:
            said = {name: getattr(event, name) for name in event.__dataclass_fields__}
            if isinstance(event, Received | Sent):
                said["data"] = event.data.hex()
            yield base | {"event": _snake(type(event).__name__), **said}


def _step(teller: Storyteller, step: Step) -> dict[str, Any]:
    said: dict[str, Any] = {"text": teller.step(step)}
    if step.values:
        said["values"] = list(step.values)
    if step.data:
        said["data"] = step.data.hex()
    return said


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
