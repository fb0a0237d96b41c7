"""`weft job`: a scenario's training jobs before a run, and how much latency they tolerate."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, changes_of, scenario_options, set_option


@click.group()
def job() -> None:
    """Show a scenario's training jobs, and how much latency they tolerate."""


@job.command()
@click.argument("scenario", type=SCENARIO_FILE)
@scenario_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def show(scenario: Path, as_json: bool, **overrides: object) -> None:
    """Print memory, operations, bytes by kind and the ideal time of a step of each training job."""
    from weft.errors import BadInputError
    from weft.results.training_jobs import print_plan
    from weft.run.spec import run_spec
    from weft.run.traffic_kinds.model import TrainingJobTraffic
    from weft.run.traffic_kinds.together import TogetherTraffic
    from weft.scenario import load_scenario
    from weft.system.consoles import make_console

    spec = run_spec(load_scenario(scenario, changes_of(overrides)))
    items = [
        item
        for each in spec.traffic
        for item in (each.together if isinstance(each, TogetherTraffic) else [each])
        if isinstance(item, TrainingJobTraffic)
    ]
    if not items:
        raise BadInputError(f"{scenario}: traffic has no training job (an item with the key `model`)")
    summaries = [(item.title, item.job(spec.fabric, spec.options.seed)[1]) for item in items]
    if as_json:
        click.echo(json.dumps([{"name": name, **asdict(plan)} for name, plan in summaries], indent=1))
        return
    console = make_console()
    for name, plan in summaries:
        print_plan(console, name, plan)


@job.command()
@click.argument("scenario", type=SCENARIO_FILE)
@click.option(
    "--longer",
    type=click.FloatRange(0, 1000, min_open=True),
    default=5.0,
    show_default=True,
    help="By how many percent the traffic may take longer.",
)
@click.option("--workers", type=click.IntRange(1), help="Runs at a time; default: as many as processors.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Keep the runs there, and repeat none of them."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@set_option
def tolerance(
    scenario: Path, longer: float, workers: int | None, out: Path | None, as_json: bool, assignments: tuple[str, ...]
) -> None:
    """Find how much latency a scenario's traffic tolerates: that of each message between hosts, by runs.

    Extra latency (`nic.dma_latency`) is raised until the traffic takes --longer percent more time; next to it stands a
    closed form, from the messages that follow each other on the critical path (docs/training.md).
    """
    from weft.commands.trial_progress import trial_progress
    from weft.drills.latency_tolerance import latency_tolerance

    with TemporaryDirectory() as temporary, trial_progress("search") as progress:
        found = latency_tolerance(
            scenario, assignments_of("--set", assignments), longer / 100, out or Path(temporary), workers, progress
        )
    if as_json:
        click.echo(json.dumps({**asdict(found), "formula_ps": found.formula_ps}, indent=1))
        return
    for line in found.lines():
        click.echo(line)
