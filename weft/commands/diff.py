"""`weft diff`: what changed in switches between two moments of a run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import click
from pydantic import TypeAdapter

from weft.errors import BadInputError
from weft.quantities.definitions import TIME
from weft.recording.state_series import state_of_series
from weft.results.json_files import read_whole
from weft.switch.debug.states import Difference, FabricState, differences
from weft.system.streams import printable

MAX_BYTES = 256 << 20
MOST_LINES = 200
_STATE = TypeAdapter(FabricState)
_SIGNS = {"added": "green", "removed": "red", "changed": "yellow"}


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--switch", "switches", multiple=True, metavar="SWITCH", help="Only of this one; several may be given.")
@click.option("-n", "--lines", type=click.IntRange(1), default=MOST_LINES, show_default=True, help="At most so many.")
@click.option("--json", "print_json", is_flag=True, help="Print all differences, a JSON object a line.")
def diff(first: str, second: str, switches: tuple[str, ...], lines: int, print_json: bool) -> None:
    """Show what changed in switches between the moments A and B.

    A moment is a file that `observe: {state_at: […]}` has a run write, or DIR@TIME: a run's directory and a time, of
    which the series of `observe: {state_series: […]}` tell.

    Entries, registers, counters and groups of switches: + was added, - was removed, ~ has another value.
    """
    moments = [_moment(text) for text in (first, second)]
    if moments[0].is_series != moments[1].is_series:
        raise BadInputError(
            f"{first}, {second}: a file of state_at has all that switches hold, series what was asked for: name two "
            "files, or two moments of series (DIR@TIME)"
        )
    before, after = (each.read() for each in moments)
    for name in switches:
        if name not in before.switches and name not in after.switches:
            raise BadInputError(f"unknown switch '{name}'", place="--switch", valid=before.switches)
    found = (each for each in differences(before, after) if not switches or each.switch in switches)
    if print_json:
        for each in found:
            click.echo(json.dumps(asdict(each)))
    else:
        for each in islice(found, lines):
            click.echo(difference_text(each))
        more = sum(1 for _ in found)
        if more:
            click.echo(f"… and {more} more (--lines)")
    left_out = max(before.left_out, after.left_out)
    if left_out:
        click.echo(f"{left_out} values were not kept: the fabric holds too many", err=True)


@dataclass(frozen=True)
class _Moment:
    """A file of `observe.state_at`, or a run's directory and a time."""

    path: Path
    time_ps: int | None

    @property
    def is_series(self) -> bool:
        return self.time_ps is not None

    def read(self) -> FabricState:
        if self.time_ps is None:
            return read_state(self.path)
        return state_of_series(self.path, self.time_ps, lambda text: click.echo(text, err=True))


def _moment(text: str) -> _Moment:
    path = Path(text)
    if path.is_file():
        return _Moment(path, None)
    directory, at, time = text.rpartition("@")
    if not at or not Path(directory).is_dir():
        raise click.UsageError(f"'{text}' is no file, and no DIR@TIME with a directory of a run")
    try:
        return _Moment(Path(directory), int(TIME.read(time, units_required=True)))
    except ValueError as error:
        raise click.UsageError(f"'{text}': {error}") from None


def read_state(path: Path) -> FabricState:
    """Read a file of `observe.state_at`. BadInputError: it is none."""
    return read_whole(_STATE, path, MAX_BYTES, "this file is no state of `observe.state_at`")


def difference_text(each: Difference) -> str:
    """Return what has changed in one line."""
    what = f"{each.switch} {each.name}" + (f"[{each.key}]" if each.key else " entries")
    if each.before is None:
        kind, text = "added", f"+ {what} {each.after}"
    elif each.after is None:
        kind, text = "removed", f"- {what} {each.before}"
    else:
        kind, text = "changed", f"~ {what} {each.before} → {each.after}"
    return click.style(printable(text), fg=_SIGNS[kind])
