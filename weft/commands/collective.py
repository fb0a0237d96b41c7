"""`weft collective`: nccl-tests' table for a fabric, without a scenario file."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import click

from weft.cli import SIZES
from weft.commands.reporting import report_options, run_and_show
from weft.commands.scenario_options import changes_of, scenario_options
from weft.hints import did_you_mean
from weft.quantities.units import parse_size_range_bytes
from weft.traffic.aggregation_format import Operation
from weft.traffic.class_reference import is_class_reference
from weft.traffic.collectives import CHOICES, COLLECTIVE_KINDS, algorithm_names, collective_named
from weft.traffic.data_types import DataType
from weft.traffic.extensions import ExtensionError

# Where an error of the scenario that the options make comes from.
_OPTION_OF = {
    "fabric.planes": "planes",
    "fabric.leaves": "leaves",
    "fabric.spines": "spines",
    "fabric.hosts_per_leaf": "hosts-per-leaf",
    "fabric.ranks_per_host": "ranks-per-host",
    "fabric.rail_optimised": "rail-optimised",
    "fabric.scale_up": "scale-up-rate",
    "fabric.host_rate": "rate",
    "fabric.delay": "delay",
    "traffic[0].algorithms": "algorithm",
    "traffic[0].sizes": "sizes",
    "traffic[0].root": "root",
    "traffic[0].operation": "operation",
}

DEFAULT_SIZES = "4K:64K:4"


class _CollectiveName(click.ParamType[str]):
    """One of Weft's collectives, or a class of the user's."""

    name = "collective"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(COLLECTIVE_KINDS)}|FILE.py:CLASS]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = str(value)
        if name not in COLLECTIVE_KINDS and not is_class_reference(name):
            self.fail(f"no collective '{name}'; {did_you_mean(name, COLLECTIVE_KINDS)}", param, ctx)
        return name


@click.command()
@click.argument("name", type=_CollectiveName())
@click.option(
    "--algorithm",
    "algorithms",
    metavar=f"[{'|'.join((*CHOICES, *algorithm_names()))}]",
    multiple=True,
    help="Several may be given; default: all that suit the fabric; auto: the fastest; nccl: as NCCL chooses.",
)
@click.option(
    "--sizes",
    type=SIZES,
    help=f"BEGIN:END:FACTOR, or a list; default {DEFAULT_SIZES}, none of a barrier.",
)
@click.option("--dtype", type=click.Choice([each.value for each in DataType]), default="float32", show_default=True)
@click.option(
    "--operation",
    type=click.Choice([each.name.lower() for each in Operation]),
    default="sum",
    show_default=True,
    help="Of reductions; and, or and xor are of integers.",
)
@click.option("--root", type=int, default=0, show_default=True, help="Rank of a broadcast's or reduce's root.")
@click.option(
    "--data",
    type=click.Choice(["random", "lengths"]),
    default="random",
    show_default=True,
    help="What is exchanged and verified; lengths: nothing is, for large sweeps.",
)
@click.option(
    "--repetitions",
    "-n",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Times are their mean, the least and the largest.",
)
@click.option(
    "--warmup",
    "-w",
    type=click.IntRange(0, 1000),
    default=0,
    show_default=True,
    help="Runs before, not counted.",
)
@click.option("--planes", type=int, default=2, show_default=True)
@click.option("--leaves", type=int, default=4, show_default=True)
@click.option("--spines", type=int, default=2, show_default=True)
@click.option("--hosts-per-leaf", type=int, default=2, show_default=True)
@click.option(
    "--ranks-per-host",
    type=int,
    help="Ranks of a host, each with NICs of its own, joined by scale-up links; default: one, no such links.",
)
@click.option("--rail-optimised", is_flag=True, help="Each rank of a host on a leaf of its own.")
@click.option("--scale-up-rate", help="Of a rank's links to the others of its host; default 3.6Tbps.")
@click.option("--rate", default="10Gbps", show_default=True, help="Of every link.")
@click.option("--delay", default="1us", show_default=True, help="Of every link.")
@scenario_options
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Directory of results.json; default none."
)
@report_options
def collective(
    name: str,
    algorithms: tuple[str, ...],
    sizes: list[int] | None,
    dtype: str,
    operation: str,
    root: int,
    data: str,
    repetitions: int,
    warmup: int,
    planes: int,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    ranks_per_host: int | None,
    rail_optimised: bool,
    scale_up_rate: str | None,
    rate: str,
    delay: str,
    out: Path | None,
    as_json: bool,
    require_valid_times: bool,
    **overrides: object,
) -> int:
    """Run a collective of several sizes on a leaf/spine fabric and print nccl-tests' columns."""
    from weft.run.spec import run_spec
    from weft.scenario import apply_changes, parse_scenario

    tree: dict[str, Any] = {
        "name": f"collective-{_file_name(name)}",
        "fabric": {
            "planes": planes,
            "leaves": leaves,
            "spines": spines,
            "hosts_per_leaf": hosts_per_leaf,
            "host_rate": rate,
            "delay": delay,
            "ranks_per_host": ranks_per_host,
            "rail_optimised": rail_optimised,
            "scale_up": {"rate": scale_up_rate} if scale_up_rate else None,
        },
        "traffic": [
            {
                "collective": name,
                "algorithms": list(algorithms) or None,
                "dtype": dtype,
                "operation": operation,
                "root": root,
                "data": data,
                "sizes": _default_sizes(name) if sizes is None else sizes,
                "repetitions": repetitions,
                "warmup": warmup,
            }
        ],
    }
    options = {key: f"--{name}" for key, name in _OPTION_OF.items()} | apply_changes(tree, changes_of(overrides))
    scenario = parse_scenario(tree, "command line", units_required=True, options=options)
    return run_and_show(run_spec(scenario), out, as_json, require_valid_times)


def _default_sizes(name: str) -> list[int]:
    """Return the sizes of a collective for which none are given."""
    with contextlib.suppress(ExtensionError):  # the scenario's check says what is wrong with it
        if not collective_named(name).has_size:
            return []
    return parse_size_range_bytes(DEFAULT_SIZES)


def _file_name(name: str) -> str:
    """Return a collective's name as directories have it."""
    stem = Path(name.rpartition(":")[0]).stem if is_class_reference(name) else name
    return re.sub("[^a-z0-9-]", "-", stem.lower())[:30]
