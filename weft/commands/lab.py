"""`weft lab`: the fabric up, Mininet's prompt in front."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import (
    changes_of,
    metrics_option,
    packet_logs_option,
    scenario_options,
    web_option,
)
from weft.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from weft.clocks.real.lab import MininetLab
    from weft.run.spec import RunSpec
    from weft.scenario import Scenario


@click.command()
@click.argument("scenario", type=SCENARIO_FILE)
@scenario_options
@packet_logs_option
@metrics_option
@web_option
def lab(
    scenario: Path, packet_logs: Path | None, metrics_port: int | None, web: str | None, **overrides: object
) -> None:
    """Bring SCENARIO's fabric up and leave it up until you leave Mininet's prompt.

    Hosts are h0, h1, …; `h0 ping h1`, `pingall` and `h0 iperf3 …` work at the prompt; `weft controller …` and
    tcpdump on any switch interface work in another terminal. Its traffic section is not run.

    SCENARIO may be lab:NAME (`weft labs`); or a network of p4lang's tutorials (topology.json) or of p4-utils
    (p4app.json): its names stay, any P4Runtime controller may take the switches over, logs and captures are where users
    look for them.
    """
    from weft.clocks.environment import require_for
    from weft.clocks.real.lab import MininetLab
    from weft.clocks.real.network_lab import NetworkLab
    from weft.clocks.real.nics_on_demand import NicsOnDemand
    from weft.live import Place, Shown
    from weft.run.spec import run_spec
    from weft.scenario.network_file import load_scenario_or_network, what_is_not_done
    from weft.scenario.observe import ObserveSection
    from weft.topologies import describe

    shown = Shown(metrics_port, None if web is None else Place.of(web), scenario.name)
    chosen, network = load_scenario_or_network(scenario, changes_of(overrides))
    if chosen.clock == "virtual":
        raise EnvironmentLacksError(
            "the virtual clock has no prompt and nothing to look at by hand: use --clock real, or `weft run`"
        )
    # A network's lab captures every port; nothing else is recorded.
    kept = ("capture_shims",) if network is not None else ()
    for line in _unused_warnings(chosen, kept):
        click.echo(line, err=True)
    observe = ObserveSection(**{name: getattr(chosen.observe, name) for name in kept})
    spec = run_spec(chosen.model_copy(update={"clock": "real", "traffic": [], "observe": observe}))
    require_for(spec.fabric, spec.options)
    from mininet.cli import CLI

    if network is not None:
        for line in what_is_not_done(network, is_virtual=False):
            click.echo(line, err=True)
        network_lab = NetworkLab(spec.fabric, spec.options, network, progress=click.echo)
        network_lab.before_building = lambda: _say_findings(spec, network_lab)
        with network_lab as of_network:
            click.echo("\n".join(of_network.where_to_look()))
            _log_packets(of_network, packet_logs)
            with shown.served(of_network, click.echo):
                CLI(of_network.network.net)
        return
    chosen_lab = MininetLab(spec.fabric, spec.options, progress=click.echo)
    chosen_lab.before_building = lambda: _say_findings(spec, chosen_lab)
    with chosen_lab as running:
        running.link_events.start()
        _log_packets(running, packet_logs)
        click.echo(describe(spec.fabric, ports=False))
        click.echo(f"dilation {chosen.dilation:g}: an emulated second takes {chosen.dilation:g} real ones")
        with NicsOnDemand(running, click.echo), shown.served(running, click.echo):
            CLI(running.network.net)


def _say_findings(spec: RunSpec, planned: MininetLab) -> None:
    """Say which settings cannot work together."""
    from weft.run.lint import findings_of

    for finding in findings_of(spec, planned.switch_configs):
        click.echo(f"warning: {finding.located(spec.places).line}")


def _unused_warnings(scenario: Scenario, kept: Collection[str]) -> list[str]:
    """Return what a scenario asks for that only runs have, as lines; labs have what is `kept`."""
    fields = type(scenario.observe).model_fields
    given = scenario.observe.model_fields_set - set(kept)
    asked = [field.alias or name for name, field in fields.items() if name in given]
    if not asked:
        return []
    return [f"warning: observe ({', '.join(asked)}): nothing is recorded at a prompt, only by `weft run`"]


def _log_packets(running: MininetLab, directory: Path | None) -> None:
    from weft.run.packet_logs import made

    if directory is not None:
        running.log_packets(made(directory))
