"""Congestion controls and choices of path in the scenario reference, as their own files in engine/ declare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.engine import (
    CongestionControlKind,
    CongestionNeeds,
    CongestionParameter,
    congestion_controls,
    path_choices,
)
from weft.quantities.definitions import quantity_of, without_unit

_NEEDS = {
    "telemetry": "INT (`int: true`)",
    "marks": "CE marks (ECN)",
    "every_acknowledgement": "an acknowledgement of each packet",
    "one_path": "one path for all packets of a flow",
    "notifications": "notifications of switches",
}


def congestion_reference() -> Iterator[str]:
    """Yield the lines about all congestion controls."""
    yield "### Congestion controls"
    yield ""
    yield "What each declares in its file; [one more](howto/congestion-control.md) is one file, or a class of yours."
    yield ""
    for kind in congestion_controls():
        yield from _control(kind)


def path_reference() -> Iterator[str]:
    """Yield the lines about all choices of path."""
    yield "### Choices of path"
    yield ""
    yield "What each declares in its file; [one more](howto/path-choice.md) is one file, or a class of yours."
    yield ""
    for kind in path_choices():
        needs = ["`retransmission: selective-repeat`"] * kind.reorders + [_NEEDS["marks"]] * kind.marks
        yield f"**`{kind.name}`**: {kind.summary} ({kind.source})." + (f" Needs {', '.join(needs)}." if needs else "")
        yield ""
        yield from _table(kind.parameters)


def _control(kind: CongestionControlKind) -> Iterator[str]:
    needs = _needs(kind.needs)
    yield f"**`{kind.name}`**: {kind.summary} ({kind.source})." + (f" Needs {needs}." if needs else "")
    yield ""
    for number, preset in enumerate(kind.presets):
        yield f"- preset `{preset.name}`{'' if number else ' (the default)'}: {preset.source}"
    if kind.presets:
        yield ""
    yield from _table(kind.parameters)


def _table(parameters: Iterable[CongestionParameter]) -> Iterator[str]:
    yield "| parameter | description | valid | default | source |"
    yield "|---|---|---|---|---|"
    for parameter in parameters:
        cells = (
            f"`{without_unit(parameter.name)}`",
            parameter.meaning,
            *_values(parameter),
            parameter.source,
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _needs(needs: CongestionNeeds) -> str:
    return ", ".join(text for name, text in _NEEDS.items() if getattr(needs, name))


def _values(parameter: CongestionParameter) -> tuple[str, str]:
    """Return the valid range and the default as a scenario would have them."""
    write = quantity_of(parameter.name).write

    def shown(value: float) -> str:
        return write(int(value) if value.is_integer() else value)

    default = shown(parameter.default) if parameter.default is not None else parameter.default_rule
    return f"{shown(parameter.least)} to {shown(parameter.most)}", default
