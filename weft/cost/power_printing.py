"""Prints power over the time of jobs as tables, and converts it to plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from weft.cost.job_power import JobPower
from weft.cost.layout import Rack
from weft.cost.power import Power, State
from weft.cost.prices import PriceTable
from weft.quantities.readable import format_number, format_time
from weft.results.figure_tables import print_figures

_COLUMNS = ("rack", "mean (kW)", "peak (kW)", "least (kW)", "swing (kW)", "within 1 ms (kW)", "energy (J)")
_MOST_RACKS = 50
_STATES = {
    State.COMPUTE: "compute alone",
    State.BOTH: "compute and communicate",
    State.COMMUNICATE: "communicate alone",
    State.IDLE: "idle",
}


def rack_name(rack: Rack) -> str:
    """Return a rack's name: its row, and its place in it."""
    return f"{rack[0]}.{rack[1]}"


def print_power(console: Console, jobs: Sequence[JobPower], accelerator: str, table: PriceTable) -> None:
    """Print each job's power by rack, and what it consists of."""
    for job in jobs:
        trace = job.trace
        count = f"{trace.accelerators:,} x {escape(accelerator)}"
        title = f"\n[bold]{escape(job.name)}[/bold]: {count}, {format_time(trace.total.end_ps)}"
        shown = list(trace.racks.items())[:_MOST_RACKS]
        rows = [[rack_name(rack), *_row(power)] for rack, power in shown]
        print_figures(console, title, _COLUMNS, [*rows, ["all", *_row(trace.total)]], ("rack",))
        if len(shown) < len(trace.racks):
            console.print(f"the first {len(shown)} of {len(trace.racks)} racks; --json has all")
        for line in _lines(job):
            console.print(escape(line), soft_wrap=True)
    console.print()
    console.print(escape(caption(table)), soft_wrap=True)


def _row(power: Power) -> list[str]:
    watts = power.mean_watts, power.peak_watts, power.least_watts, power.swing_watts, power.ramp_watts()
    return [*(f"{each / 1e3:,.3f}" for each in watts), format_number(power.joules)]


def _lines(job: JobPower) -> list[str]:
    trace, total = job.trace, job.trace.total
    constant = trace.network_watts + trace.servers_watts
    lines = [
        f"of the mean: network {trace.network_watts / 1e3:,.3f} kW, servers' other parts "
        f"{trace.servers_watts / 1e3:,.3f} kW, accelerators {(total.mean_watts - constant) / 1e3:,.3f} kW",
        "accelerators of the job: "
        + ", ".join(f"{_STATES[state]} {share:.1%}" for state, share in trace.state_shares.items()),
        f"swing: {total.swing_watts / total.peak_watts:.1%} of the peak",
    ]
    energy = f"{job.what}: {format_number(total.joules)} J"
    if job.tokens:
        energy += f"; {format_number(total.joules / job.tokens)} J a token"
    if job.moved_bytes:
        energy += f"; {format_number(total.joules / job.moved_bytes * 1e9)} J for each GB of all ranks' data"
    return [*lines, energy]


def caption(table: PriceTable) -> str:
    """Return the note on assumptions that every output of power carries."""
    return (
        f"Assumed watts ({table.date}; {table.source}): power follows what an accelerator does at once; network and "
        "servers' other parts draw the same at all times; no cooling, no losses of power supply."
    )


def as_dict(jobs: Sequence[JobPower], accelerator: str, table: PriceTable) -> dict[str, Any]:
    """Return plain values: the assumptions, then each job with its racks, and the total's course."""
    return {
        "assumptions": table.model_dump(mode="json"),
        "accelerator": accelerator,
        "jobs": [
            {
                "name": job.name,
                "accelerators": job.trace.accelerators,
                "time_ps": job.trace.total.end_ps,
                "tokens": job.tokens,
                "moved_bytes": job.moved_bytes,
                "network_watts": job.trace.network_watts,
                "servers_watts": job.trace.servers_watts,
                "state_shares": {str(state): share for state, share in job.trace.state_shares.items()},
                "racks": [{"rack": rack_name(rack), **_figures(power)} for rack, power in job.trace.racks.items()],
                "total": _figures(job.trace.total)
                | {"since_ps": job.trace.total.since_ps.tolist(), "watts": job.trace.total.watts.tolist()},
            }
            for job in jobs
        ],
    }


def _figures(power: Power) -> dict[str, float]:
    return {
        "mean_watts": power.mean_watts,
        "peak_watts": power.peak_watts,
        "least_watts": power.least_watts,
        "swing_watts": power.swing_watts,
        "ramp_watts_within_1_ms": power.ramp_watts(),
        "joules": power.joules,
    }
