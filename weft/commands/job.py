"""`weft job`: look at the training jobs that a scenario describes, without running them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import changes_of, scenario_options


@click.group()
def job() -> None:
    """Show a scenario's training jobs."""


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
