"""Commands for entropy values (EVs) of hosts' queue pairs of MRC, their profiles and their events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, get_args

import click

from weft.controller.cli.group import Find, controller, json_option, reports_errors
from weft.controller.errors import SettingError
from weft.controller.features.kind import Row
from weft.controller.operations_protocol import request
from weft.controller.output import print_rows
from weft.quantities.ev_profiles import MOST_PROFILE_ID, EvEventState, EvMode, ProfileState
from weft.quantities.units import PS_PER_US

_Parameters = ParamSpec("_Parameters")
_PATIENCE_S = 60.0
"""Where emulated time is real time; answers to probes take as many times longer as the lab's time is slower."""


class _Value(click.ParamType[int]):
    """An EV: a whole number, maybe in hexadecimal."""

    name = "ev"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click.ParamType."""
        try:
            number = int(str(value), 0)
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 32:
            self.fail(f"{value!r} is no EV (valid: 0 to 0xffffffff)", param, ctx)
        return number


def _choice(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Add the argument and options that choose EVs."""
    for add in (
        click.option("--plane", type=click.IntRange(min=0), help="Those of this plane."),
        click.option("--value", type=_Value(), help="The one of this value, such as 0xc0010000."),
        click.option("--peer", metavar="HOST", help="Those to this host."),
        click.argument("host", metavar="HOST"),
    ):
        command = add(command)
    return command


class _EvOfPlane(click.ParamType[tuple[int, int]]):
    """An EV of an explicit profile, PLANE:VALUE."""

    name = "plane:ev"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """See click.ParamType."""
        plane, colon, number = str(value).partition(":")
        if not colon or not plane.isdecimal():
            self.fail(f"{value!r} is no EV of a plane (valid: PLANE:VALUE, such as 0:0xc0010000)", param, ctx)
        return int(plane), _Value().convert(number, param, ctx)


def _ask(find: Find, **message: Any) -> dict[str, Any]:
    lab = find()
    return request(lab, _PATIENCE_S * max(1.0, lab.dilation), **message)


@controller.group()
def ev() -> None:
    """Work with the entropy values (EVs) of a host's queue pairs of MRC, their profiles and events."""


@ev.command("list")
@_choice
@json_option
@click.pass_obj
@reports_errors
def list_evs(find: Find, /, as_json: bool, **choice: Any) -> None:
    """Show EVs with their states and how many packets took each; denied ones without a queue pair, too."""
    rows: list[Row] = []
    total = 1
    while len(rows) < total:  # an answer has a part of many
        answer = _ask(find, do="evs", start=len(rows), **choice)
        rows += answer["evs"]
        total = answer["total"] if answer["evs"] else len(rows)
    print_rows(rows if as_json else [_shown(row) for row in rows], as_json, "Entropy values")


@ev.command()
@_choice
@click.pass_obj
@reports_errors
def deny(find: Find, /, **choice: Any) -> None:
    """Have queue pairs not use EVs; refused if a queue pair would have none left."""
    click.echo(_ask(find, do="deny evs", **choice)["done"])


@ev.command()
@_choice
@click.pass_obj
@reports_errors
def allow(find: Find, /, **choice: Any) -> None:
    """Have queue pairs use denied EVs again, even if no queue pair has them now."""
    click.echo(_ask(find, do="allow evs", **choice)["done"])


@ev.command()
@_choice
@json_option
@click.pass_obj
@reports_errors
def probe(find: Find, /, as_json: bool, **choice: Any) -> None:
    """Send an EV probe over each EV, denied ones included, and show the round trips of those that are answered."""
    rows = _ask(find, do="probe evs", **choice)["evs"]
    print_rows(rows if as_json else [_probed(row) for row in rows], as_json, "EV probes")


@ev.command()
@click.argument("host", metavar="HOST")
@json_option
@click.pass_obj
@reports_errors
def events(find: Find, host: str, as_json: bool) -> None:
    """Take the EV events of a host that nobody has taken: changes to states that the EVs' profiles name."""
    rows = _ask(find, do="ev events", host=host)["events"]
    print_rows(rows if as_json else [_event(row) for row in rows], as_json, "EV events")


@ev.group()
def profile() -> None:
    """Show, change and assign the EV profiles of a host."""


_profile_argument = click.argument("profile_id", metavar="PROFILE", type=click.IntRange(min=0, max=MOST_PROFILE_ID))


@profile.command("list")
@click.argument("host", metavar="HOST")
@json_option
@click.pass_obj
@reports_errors
def list_profiles(find: Find, host: str, as_json: bool) -> None:
    """Show a host's EV profiles; a profile that is not shown is in the state init."""
    rows = _ask(find, do="ev profiles", host=host)["profiles"]
    print_rows(rows if as_json else [_profile(row) for row in rows], as_json, "EV profiles")


@profile.command("show")
@click.argument("host", metavar="HOST")
@_profile_argument
@json_option
@click.pass_obj
@reports_errors
def show_profile(find: Find, host: str, profile_id: int, as_json: bool) -> None:
    """Show the EVs of an explicit EV profile."""
    rows = _ask(find, do="ev profiles", host=host)["profiles"]
    found = next((row for row in rows if row["profile_id"] == profile_id), None)
    if found is None:
        raise SettingError(f"{host} has no EV profile {profile_id}", valid=[row["profile_id"] for row in rows])
    evs = [{"plane": plane, "value": value if as_json else f"0x{value:08x}"} for plane, value in found["evs"]]
    print_rows(evs, as_json, f"EVs of profile {profile_id} ({found['ev_mode']})")


@profile.command("set")
@click.argument("host", metavar="HOST")
@_profile_argument
@click.option("--state", type=click.Choice(get_args(ProfileState)), help="The next state; init deletes it.")
@click.option("--mode", "ev_mode", type=click.Choice(get_args(EvMode)), help="Who chooses the EVs.")
@click.option("--count", "ev_count", type=click.IntRange(min=1), help="Active EVs of a queue pair.")
@click.option("--backups", "ev_backups", type=click.IntRange(min=0), help="EVs in reserve.")
@click.option("--min-active", "ev_min_active", type=click.IntRange(min=0), help="EVs that always stay active.")
@click.option(
    "--event",
    "ev_event_mask",
    multiple=True,
    type=click.Choice([*get_args(EvEventState), "none"]),
    help="A state to tell.",
)
@click.option(
    "--ev", "evs", multiple=True, type=_EvOfPlane(), metavar="PLANE:VALUE", help="All EVs of an explicit one."
)
@click.pass_obj
@reports_errors
def set_profile(find: Find, /, host: str, profile_id: int, **given: Any) -> None:
    """Change an EV profile's attributes and state: init, offline and online follow each other, both ways."""
    attributes = {name: value for name, value in given.items() if value not in (None, ())}
    if (mask := attributes.get("ev_event_mask")) is not None:
        if "none" in mask and len(mask) > 1:
            raise click.UsageError("--event none goes with no other")
        attributes["ev_event_mask"] = [] if "none" in mask else mask
    if not attributes:
        raise click.UsageError("nothing to set (valid: --state, --mode, --count, …)")
    click.echo(_ask(find, do="modify ev profile", host=host, profile_id=profile_id, attributes=attributes)["done"])


@profile.command("assign")
@click.argument("host", metavar="HOST")
@_profile_argument
@click.pass_obj
@reports_errors
def assign_profile(find: Find, host: str, profile_id: int) -> None:
    """Have queue pairs that a host makes from now on take an EV profile that is online."""
    click.echo(_ask(find, do="assign ev profile", host=host, profile_id=profile_id)["done"])


def _common(row: Row) -> Row:
    return {"peer": row["peer_host"], "plane": row["plane"], "value": f"0x{row['value']:08x}", "state": row["state"]}


def _shown(row: Row) -> Row:
    return {
        "queue pair": row["queue_pair"],
        **_common(row),
        "active": row["active"],
        "packets": row["turns"],
    }


def _probed(row: Row) -> Row:
    round_trip_ps = row["round_trip_ps"]
    return {
        **_common(row),
        "answered": round_trip_ps is not None,
        "round trip, us": None if round_trip_ps is None else round(round_trip_ps / PS_PER_US, 3),
    }


def _event(row: Row) -> Row:
    return {
        "time, us": round(row["time_ps"] / PS_PER_US, 3),
        "profile": row["profile_id"],
        "queue pair": row["queue_pair"],
        **_common(row),
        "dropped before": row["drop_count"],
    }


def _profile(row: Row) -> Row:
    mask = row["ev_event_mask"]
    return {
        "profile": row["profile_id"],
        "state": row["state"],
        "mode": row["ev_mode"],
        "count": row["ev_count"],
        "backups": row["ev_backups"],
        "min active": row["ev_min_active"],
        "events": None if mask is None else ", ".join(mask) or "none",
        "assigned": row["assigned"],
        "queue pairs": row["queue_pairs"],
    }
