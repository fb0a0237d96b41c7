"""State of switches at a moment of a run, from its table `state_series`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weft.errors import BadInputError
from weft.quantities.readable import format_time
from weft.recording.reading import read_table
from weft.recording.tables import integers_of, names_of
from weft.switch.debug.states import FabricState, SwitchState

_NONE = "-1"


def state_of_series(directory: Path, time_ps: int, note: Callable[[str], object] = lambda _: None) -> FabricState:
    """Return what the series in a run's directory say of a moment: their last samples until then.

    `note` is told when the moment is after all rows: nothing changed since, or the run or its series were over.

    Raises:
        BadInputError: the run has none, or they cannot be read.
    """
    saved = read_table(directory, "state_series")
    if saved is None:
        raise BadInputError("has no state_series (observe: {state_series: […]})", place=directory)
    table = saved.columns
    texts = [names_of(table, name).texts().tolist() for name in ("switch", "object", "key", "quantity", "value")]
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    times_ps = integers_of(table, "time_ps").tolist()
    if time_ps > (last_ps := max(times_ps, default=0)):
        note(f"{directory}: the last change in its series is at {format_time(last_ps)}")
    for at_ps, switch, name, key, quantity, value in zip(times_ps, *texts, strict=True):
        if at_ps <= time_ps:
            cells.setdefault((switch, name, key), {})[quantity] = value
    state = FabricState(time_ps=time_ps, switches={name: SwitchState(program="") for name in sorted(set(texts[0]))})
    for (switch, name, key), quantities in cells.items():
        _put(state.switches[switch], name, key, quantities)
    return state


def _put(state: SwitchState, name: str, key: str, quantities: dict[str, str]) -> None:
    """Put the values of a cell, an entry or a table where `weft diff` looks for them; what is gone, nowhere."""
    quantities = {what: value for what, value in quantities.items() if value != _NONE}
    if "value" in quantities:
        _keep(state.registers, name, key, int(quantities["value"]))
    if "entries" in quantities:
        _keep(state.entries, name, "", int(quantities["entries"]))
    counted = {
        what.replace("_packets", ""): value
        for what, value in quantities.items()
        if what not in ("value", "entries") and value != "0"
    }
    if counted:
        text = ", ".join(f"{value} {what}" for what, value in counted.items())
        _keep(state.counters, name, key, text)


def _keep(section: dict[str, dict[str, str | int]], name: str, key: str, value: str | int) -> None:
    if value:
        section.setdefault(name, {})[key] = value
