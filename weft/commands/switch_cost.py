"""`weft switch-cost`: what reduction in the network takes of a switch, and how many jobs a memory holds."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from weft.cli import EXISTING_FILE
from weft.commands.option_groups import QuantityOption
from weft.quantities.definitions import POSITIVE_TIME, RATE, SIZE
from weft.quantities.units import PS_PER_S
from weft.scenario import AggregationSection, FabricOptions
from weft.scenario.aggregation import LaneCount
from weft.scenario.options import Service
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN

if TYPE_CHECKING:
    from weft.controller.switch_cost import JobCost, SwitchCost

LANES = [str(each) for each in get_args(LaneCount)]
MEMORY = SIZE.between(1, 2**50, example="22MiB")
MAX_JOBS = 2**20
MAX_JOB_SLOTS = 2**16 - 1
"""Count in the packet's field `slot`."""


@click.command("switch-cost")
@click.option(
    "--lanes", type=click.Choice(LANES), default=LANES[0], show_default=True, help="int32 values of a packet."
)
@click.option(
    "--service",
    "services",
    type=click.Choice(get_args(Service)),
    multiple=True,
    help="Module that the program has besides; several may be given.",
)
@click.option("--p4", type=EXISTING_FILE, help="The switches' program; by default Weft's own.")
@click.option(
    "--define",
    "-D",
    "defines",
    metavar="NAME=VALUE",
    multiple=True,
    help="Of the preprocessor, such as SLOTS=1024.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1, DEFAULT_TREE_CHILDREN),
    default=8,
    show_default=True,
    help="Of a job below the switch; of a switch above leaves, its leaves.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, MAX_JOB_SLOTS),
    help="Of a job; by default two bandwidth-delay products.",
)
@click.option(
    "--rate",
    type=QuantityOption(RATE),
    default="400Gb/s",
    show_default=True,
    help="Of a host, for default slots.",
)
@click.option(
    "--round-trip",
    type=QuantityOption(POSITIVE_TIME),
    default="4us",
    show_default=True,
    help="From a host to the root and back, for default slots.",
)
@click.option("--memory", type=QuantityOption(MEMORY), help="Of the switch; how many jobs does it hold?")
@click.option("--jobs", type=click.IntRange(1, MAX_JOBS), help="What memory do so many need?")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def switch_cost(
    lanes: str,
    services: tuple[Service, ...],
    p4: Path | None,
    defines: tuple[str, ...],
    ranks: int,
    slots: int | None,
    rate: int,
    round_trip: int,
    memory: int | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Print what jobs that reduce in the network take of a switch: registers, table entries, and how many fit.

    Sizes are those that the compiled program declares; entries are what the controller plans. Without --memory and
    --jobs it is the program's own slots that limit the jobs.
    """
    from weft.clocks.endpoint_settings import slots_of_product
    from weft.error_translation import raised_as_weft_errors
    from weft.errors import BadInputError
    from weft.traffic.aggregation_format import frame_bytes

    if memory is not None and jobs is not None:
        raise click.UsageError("--memory and --jobs: each follows from the other, give one")
    options = FabricOptions(aggregation=AggregationSection(lanes=int(lanes)), services=list(services))
    with raised_as_weft_errors():
        cost = _cost(p4 or options.p4, {**options.macros, **_macros(defines)})
        count = slots or slots_of_product(round_trip * rate // (8 * PS_PER_S), frame_bytes(4, int(lanes)))
        if count > MAX_JOB_SLOTS:
            raise BadInputError(
                f"two products of --rate and --round-trip are {count:,} slots",
                valid=f"up to {MAX_JOB_SLOTS:,}",
            )
        job = cost.job(ranks, count)
        limits = cost.limits(job, memory)
        if jobs is not None:
            del limits["slots"]
            least = min(limits, key=lambda name: limits[name])
            if jobs > limits[least]:
                raise BadInputError(
                    f"{least} has room for {limits[least]:,} of {ranks} ranks",
                    place=f"--jobs {jobs}",
                    valid="up to that",
                )
    fitting = min(limits.values()) if jobs is None else jobs
    summary = _summary(cost, job, limits, fitting)
    if as_json:
        click.echo(json.dumps(summary, indent=1))
    else:
        _print(summary)


def _macros(defines: tuple[str, ...]) -> dict[str, str]:
    macros = {}
    for each in defines:
        name, equals, value = each.partition("=")
        if not name.isidentifier() or not equals:
            raise click.BadParameter(f"'{each}' (valid: NAME=VALUE)", param_hint="--define")
        macros[name] = value
    return macros


def _cost(source: Path, macros: dict[str, str]) -> SwitchCost:
    from weft.controller.pipeline import Pipeline
    from weft.controller.switch_cost import SwitchCost
    from weft.scenario.program import compile_program

    with tempfile.TemporaryDirectory(prefix="weft-") as directory:
        program = compile_program(source, Path(directory), macros=macros)
        return SwitchCost(Pipeline.load(program.p4info, program.json, program.p4info_bytes))


def _summary(cost: SwitchCost, job: JobCost, limits: dict[str, int], jobs: int) -> dict[str, Any]:
    """Return plain values: of the program, of a job, and of as many jobs as fit or are asked for."""
    return {
        "program": {
            "slots": cost.slots,
            "slot_bits": cost.slot_bits,
            "slot_registers": len(cost.slot_registers),
            "other_register_bits": cost.other_bits,
            "metadata_bits": cost.packet.metadata_bits,
            "header_bits": cost.packet.header_bits,
        },
        "tables": [
            {
                "table": each.entry.table,
                "key_bits": each.entry.key_bits,
                "action_bits": each.entry.action_bits,
                "counter_bits": each.entry.counter_bits,
                "size": each.entry.table_size,
                "entries_of_job": each.entries,
                "bits_of_job": each.bits,
            }
            for each in job.tables
        ],
        "job": {
            "ranks": job.children,
            "slots": job.slots,
            "slot_bits": job.slot_bits,
            "entry_bits": job.entry_bits,
            "group_bits": job.group_bits,
            "bits": job.bits,
        },
        "limits": limits,
        "jobs": jobs,
        "slots": jobs * job.slots,
        "memory_bytes": cost.memory_bytes(job, jobs),
    }


def _print(summary: dict[str, Any]) -> None:
    """Print a summary: tables' entries, then a line for each of the rest."""
    from rich.table import Table

    from weft.quantities.readable import counted, format_size
    from weft.system.consoles import make_console

    def size(bits: int) -> str:
        return format_size(bits / 8)

    program, job, limits = summary["program"], summary["job"], summary["limits"]
    lines = [
        f"slot: {size(program['slot_bits'])} of registers ({program['slot_registers']} arrays, two versions); "
        f"compiled for {program['slots']:,}, {size(program['slots'] * program['slot_bits'])}",
        f"other registers: {size(program['other_register_bits'])}",
        f"of a packet: {program['header_bits']:,} bits of headers, "
        f"{program['metadata_bits']:,} of metadata and variables",
        f"job of {counted(job['ranks'], 'rank')} and {counted(job['slots'], 'slot')}: "
        f"{size(job['slot_bits'])} of registers, {size(job['entry_bits'])} of entries and multicast group, "
        f"{size(job['bits'])} together",
        "room for jobs: " + ", ".join(f"{name} {most:,}" for name, most in limits.items()),
        f"{counted(summary['jobs'], 'job')}: {summary['slots']:,} slots, {format_size(summary['memory_bytes'])}",
    ]
    table = Table(title="Entries of a job", title_justify="left", caption=None)
    table.add_column("table")
    for name in (
        "key (bits)",
        "action (bits)",
        "counters (bits)",
        "entries",
        "together (B)",
        "size of the table",
    ):
        table.add_column(name, justify="right")
    for each in summary["tables"]:
        widths = (each["key_bits"], each["action_bits"], each["counter_bits"], each["entries_of_job"])
        table.add_row(each["table"], *map(str, widths), f"{each['bits_of_job'] / 8:.1f}", f"{each['size']:,}")
    console = make_console()
    console.print(table)
    for line in lines:
        console.print(line, soft_wrap=True)
