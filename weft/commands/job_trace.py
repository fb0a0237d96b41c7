"""`weft job-trace`: look at traces of jobs and flows, and convert them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import changes_of, set_option
from weft.errors import BadInputError
from weft.quantities.units import parse_size_bytes, parse_time_ps

if TYPE_CHECKING:
    from weft.jobs.traces import Trace
    from weft.traffic.jobs import Job

_TRACE = click.Path(path_type=Path)
_TO = click.option(
    "--to", "to_name", default="", metavar="FORMAT", help="Of OUTPUT; default: goal for .goal, else chakra."
)


class _Quantity(click.ParamType[int]):
    def __init__(self, name: str, parse: Callable[[str], int]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return self._parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a trace is read."""
    for option in reversed(
        (
            click.option("--format", "format_name", default="", metavar="NAME", help="Default: what PATH looks like."),
            click.option("--accelerator", metavar="NAME", help="Computes what is given as operations and bytes."),
            click.option("--precision", metavar="NAME", help="Of the accelerator's operations; default: bf16."),
            click.option(
                "--groups", type=click.Path(path_type=Path), help="Process groups of Chakra; default: PATH.json."
            ),
            click.option(
                "--send-overhead",
                type=_Quantity("time", parse_time_ps),
                default=0,
                help="Time of a GOAL rank's processor for each message: o of LogGP.",
            ),
            click.option(
                "--eager",
                type=_Quantity("size", parse_size_bytes),
                default=65_535,
                show_default=True,
                help="GOAL messages of up to this size are not waited for by their sender: S of LogGOPS.",
            ),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@click.group("job-trace")
def job_trace() -> None:
    """Show and convert traces: Chakra, GOAL, records of NCCL and PyTorch, workloads of SimAI, lists of flows."""


@job_trace.command()
@click.argument("path", type=_TRACE)
@_reading
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def show(path: Path, as_json: bool, **reading: Any) -> None:
    """Read a trace, check that its job can come to an end, and print what it holds."""
    from weft.jobs.traces.describing import as_dict, describe

    trace = _read(path, **reading)
    click.echo(json.dumps(as_dict(trace), indent=1) if as_json else describe(trace))


@job_trace.command()
@click.argument("path", type=_TRACE)
@click.argument("output", type=_TRACE)
@_TO
@_reading
def convert(path: Path, output: Path, to_name: str, **reading: Any) -> None:
    """Write the job of a trace as Chakra or GOAL; of Chakra, OUTPUT is the beginning of the files' names."""
    trace = _read(path, **reading)
    if trace.job is None:
        raise BadInputError("flows cannot be converted", place=path, valid="a trace of a job")
    _write(trace.job, output, to_name)


@job_trace.command()
@click.argument("scenario", type=SCENARIO_FILE)
@click.argument("output", type=_TRACE)
@click.option("--item", type=click.IntRange(0), default=0, show_default=True, help="Of the traffic, from 0.")
@_TO
@set_option
def export(scenario: Path, output: Path, item: int, to_name: str, assignments: tuple[str, ...]) -> None:
    """Write an item of a scenario's traffic as Chakra or GOAL, without running it."""
    from weft.run.spec import run_spec
    from weft.scenario import load_scenario

    spec = run_spec(load_scenario(scenario, changes_of({"assignments": assignments})))
    if item >= len(spec.traffic):
        raise BadInputError(
            f"{scenario} has {len(spec.traffic)}",
            place=f"--item {item}",
            valid=f"0 to {len(spec.traffic) - 1}",
        )
    chosen = spec.traffic[item]
    job = chosen.as_job(spec.fabric, spec.options.seed)
    if job is None:
        raise BadInputError(f"{scenario}: traffic[{item}] is of kind {chosen.kind}, which is no job")
    _write(job, output, to_name)


def _write(job: Job, output: Path, to_name: str) -> None:
    from weft.jobs.traces import write_trace

    files = write_trace(job, output, to_name or ("goal" if output.suffix == ".goal" else "chakra"))
    click.echo(f"wrote {files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else ""))


def _read(
    path: Path,
    format_name: str,
    accelerator: str | None,
    precision: str | None,
    groups: Path | None,
    send_overhead: int,
    eager: int,
) -> Trace:
    from weft.jobs.traces import ReadOptions, read_trace, roofline_of

    if accelerator is None and precision is not None:
        raise BadInputError("means nothing without --accelerator", place=f"--precision {precision}")
    roofline = None if accelerator is None else roofline_of(accelerator, precision or "bf16")
    return read_trace(path, format_name, ReadOptions(roofline, groups, send_overhead, eager))
