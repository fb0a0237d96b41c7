"""Options that override a scenario file's values, shared by `weft run` and `weft lab`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import click

from weft.errors import BadInputError
from weft.scenario import LinkEventSection, Scenario, parse_scenario

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--clock", type=click.Choice(["real", "virtual"]), help="Real time in Mininet, or simulated."
    ),
    click.option(
        "--target", type=click.Choice(["embedded", "bmv2"]), help="Which switch runs the P4 program."
    ),
    click.option("--compiler", type=click.Choice(["embedded", "p4c"]), help="Which compiler compiles it."),
    click.option("--links", type=click.Choice(["veth", "internal"]), help="Links between switches."),
    click.option(
        "--ip-version",
        type=click.Choice(["4", "6"]),
        callback=lambda _context, _option, value: None if value is None else int(value),
        help="Of RoCEv2 and aggregation packets.",
    ),
    click.option("--dilation", type=float, help="Real seconds that an emulated second takes."),
    click.option("--workers", type=int, help="Threads that serve a virtual run; the results are the same."),
    click.option("--seed", type=int, help="Of faults, weights and random data."),
    click.option(
        "--link-down",
        "links_down",
        multiple=True,
        metavar="NODE-NODE",
        help="A link that is down from the start, such as p0l0-p0s1; several may be given.",
    ),
)


def scenario_options(command: _Command) -> _Command:
    """Add the options to a click command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def override(scenario: Scenario, overrides: Mapping[str, object]) -> Scenario:
    """Return the scenario with the given values in place of its own; None stands for not given.

    Raises:
        BadInputError: a value is out of range.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    given |= events_of(given.pop("links_down", ()), scenario.events)
    if not given:
        return scenario
    parse_scenario(given, "command line")
    return scenario.model_copy(update=given)


def events_of(links_down: object, others: Sequence[LinkEventSection] = ()) -> dict[str, object]:
    """Return the value of `events` that `--link-down` and a scenario's own make; none without the option.

    Raises:
        BadInputError: a link's name is not two nodes.
    """
    names = cast("Sequence[str]", links_down)
    return {"events": [*map(_failed_from_the_start, names), *others]} if names else {}


def _failed_from_the_start(name: str) -> LinkEventSection:
    ends = name.split("-")
    if len(ends) != 2 or not all(ends):
        raise BadInputError(f"--link-down {name}: is not NODE-NODE, such as p0l0-p0s1")
    return LinkEventSection(link=f"{ends[0]}<->{ends[1]}", state="down")
