"""Options that override a scenario file's values, shared by `weft run` and `weft lab`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import click

from weft.commands.option_groups import with_options
from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.scenario import Change, read_yaml

metrics_option = click.option(
    "--metrics",
    "metrics_port",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=9464,
    metavar="[PORT]",
    help="Serve metrics for Prometheus at this port of 127.0.0.1 (9464; 0: any); real clock only.",
)

web_option = click.option(
    "--web",
    "web",
    is_flag=False,
    flag_value="127.0.0.1",
    metavar="[[ADDRESS:]PORT]",
    help="Serve a live page of load, queues, events and tables (127.0.0.1:9465; port 0: any); real clock only.",
)

packet_logs_option = click.option(
    "--packet-logs",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write what each packet meets in each switch to DIR/SWITCH.log, as simple_switch does; takes time.",
)

_EXAMPLES = {"--set": "fabric.host_rate=100Gb/s", "--assume": "energy.years=5"}

set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of a scenario, such as fabric.host_rate=100Gb/s or traffic[0].incast=h3; several may be given.",
)

p4_option = click.option(
    "--p4", metavar="FILE", help="The switches' program, in place of the one of its name if there is one."
)

scenario_options = with_options(
    click.option("--clock", type=click.Choice(["real", "virtual"]), help="Real time in Mininet, or simulated."),
    click.option("--target", type=click.Choice(["embedded", "bmv2"]), help="Which switch runs the P4 program."),
    p4_option,
    click.option("--compiler", type=click.Choice(["embedded", "p4c"]), help="Which compiler compiles it."),
    click.option("--links", type=click.Choice(["veth", "internal"]), help="Links between switches."),
    click.option(
        "--grpc",
        type=click.Choice(["unix", "tcp"]),
        help="How controllers reach a lab's switches: a socket of yours, or a port open to every local user.",
    ),
    click.option(
        "--ip-version",
        type=click.Choice(["4", "6"]),
        callback=lambda _context, _option, value: None if value is None else int(value),
        help="Of RoCEv2 and aggregation packets.",
    ),
    click.option("--dilation", type=float, help="Real seconds that an emulated second takes."),
    click.option("--workers", type=int, help="Threads that serve a virtual run; the results are the same."),
    click.option("--seed", type=int, help="Draws all that is random, collisions of hashes included."),
    click.option(
        "--link-down",
        "links_down",
        multiple=True,
        metavar="LINK",
        help="A link that is down from the start, such as p0l0-p0s1 or p0s1-*; several may be given.",
    ),
    set_option,
)


def changes_of(options: Mapping[str, object]) -> list[Change]:
    """Return what the options change in a scenario; None stands for not given, and `--set` comes first.

    Raises:
        BadInputError: a value of `--set` is no YAML, or `--link-down` names no link.
    """
    given = {name: value for name, value in options.items() if value is not None}
    changes = assignments_of("--set", cast("Sequence[str]", given.pop("assignments", ())))
    links = cast("Sequence[str]", given.pop("links_down", ()))
    changes += [Change(name, value, f"--{name.replace('_', '-')}") for name, value in given.items()]
    return changes + [Change("events[]", {"link": link, "state": "down"}, f"--link-down {link}") for link in links]


def as_assignments(options: Mapping[str, object], *, clock: str | None) -> list[str]:
    """Return the options as `--set` says the same of a scenario, for commands that have no others.

    `clock` is the one that the scenario ran with: what runs it again for its switches must have the virtual one.
    """
    given = {name: value for name, value in options.items() if value is not None and name != "clock"}
    texts = list(cast("Sequence[str]", given.pop("assignments", ())))
    links = cast("Sequence[str]", given.pop("links_down", ()))
    texts += [f"{name}={value}" for name, value in given.items()]
    texts += [f"events[]={json.dumps({'link': link, 'state': 'down'})}" for link in links]
    # The scenario itself may name the real one, though an option has run it with the virtual one.
    if clock != "virtual" or options.get("clock") is not None:
        texts.append("clock=virtual")
    return [word for text in texts for word in ("--set", text)]


def as_options(overrides: Mapping[str, object]) -> list[str]:
    """Return the options of `scenario_options` as a command line has them."""
    words: list[str] = []
    for name, value in overrides.items():
        option = {"assignments": "--set", "links_down": "--link-down"}.get(name, f"--{name.replace('_', '-')}")
        values = value if isinstance(value, tuple) else [] if value is None else [value]
        words += [word for each in values for word in (option, str(each))]
    return words


def assignments_of(option: str, texts: Sequence[str]) -> list[Change]:
    """Return what `KEY=VALUE` of an option change. Raises BadInputError."""
    return [_assignment(option, text) for text in texts]


def _assignment(option: str, text: str) -> Change:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise BadInputError(f"{option} {shown(text)}: is not KEY=VALUE, such as {_EXAMPLES[option]}")
    return Change(key, read_yaml(value, f"{option} {key}"), f"{option} {key}")
