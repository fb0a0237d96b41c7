"""`weft bench`: the IETF's benchmarks of AI fabrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import changes_of, set_option

if TYPE_CHECKING:
    from weft.bench.model import BenchReport

_SUITES = ("training", "inference")
_PROFILES = ("smoke", "standard", "full")


@click.command()
@click.argument("suite", type=click.Choice(_SUITES))
@click.argument("fabric", type=SCENARIO_FILE, required=False, metavar="FABRIC.yaml")
@click.option(
    "--profile",
    type=click.Choice(_PROFILES),
    default="smoke",
    show_default=True,
    help="How much of the draft's procedures is run: minutes, up to an hour, or all of it.",
)
@click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="TEST",
    help="Only this test: its name, its section such as 7.2, or a category such as 7. Several may be given.",
)
@click.option(
    "--transport",
    "transports",
    multiple=True,
    metavar="NAME",
    help="Run the tests over this transport: own, rc, mrc, uet-rud, uet-rod, … Several may be given.",
)
@click.option(
    "--load-balancing",
    "load_balancings",
    multiple=True,
    metavar="NAME",
    help="Run the tests with this way of balancing load: own, ecmp, flowlet, spray, adaptive. Several may be given.",
)
@set_option
@click.option("--workers", type=click.IntRange(1), help="Trials at a time; default: as many as processors.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the report and of all trials; default runs/bench-SUITE-NAME.",
)
@click.option("--list", "lists", is_flag=True, help="List the suite's tests and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def bench(
    suite: str,
    fabric: Path | None,
    profile: str,
    tests: tuple[str, ...],
    transports: tuple[str, ...],
    load_balancings: tuple[str, ...],
    assignments: tuple[str, ...],
    workers: int | None,
    out: Path | None,
    lists: bool,
    as_json: bool,
) -> int:
    """Benchmark a fabric as the IETF's drafts for AI training and inference fabrics define it.

    FABRIC.yaml is a scenario; its traffic does not count. bench.json, bench.md and bench.html in --out are the report.
    Trials that have finished there before are not repeated, so that an interrupted benchmark goes on where it was.
    Exits with 1 if a test failed; a test that a fabric cannot have is not applicable.
    """
    from weft.bench.suites import SUITES

    chosen = SUITES[suite]
    if lists:
        _print_tests(suite)
        return 0
    if fabric is None:
        raise click.UsageError("Missing argument 'FABRIC.yaml'.")
    from weft.bench.profile import Profile
    from weft.bench.report_markdown import write_markdown
    from weft.bench.report_page import PAGE_FILE, write_bench_page
    from weft.bench.running import run_bench
    from weft.bench.subject import read_subject
    from weft.bench.variants import variants_of
    from weft.commands.trial_progress import trial_progress

    subject = read_subject(fabric, changes_of({"assignments": assignments}))
    selected = chosen.chosen(tests)
    variants = variants_of(transports, load_balancings)
    directory = out or Path("runs") / f"bench-{suite}-{subject.name}"
    try:
        with trial_progress("test") as progress:
            report = run_bench(
                chosen,
                subject,
                directory,
                profile=Profile(profile),
                tests=selected,
                variants=variants,
                workers=workers,
                progress=progress,
            )
    except KeyboardInterrupt:
        click.echo("· what runs has been ended; the same command goes on with what is left", err=True)
        raise
    write_markdown(report, directory)
    page = write_bench_page(report, directory / PAGE_FILE)
    if as_json:
        click.echo(report.as_json())
    else:
        _print_report(report)
        click.echo(f"report: {page} (also bench.md, bench.json)")
    return 0 if report.ok else 1


def _print_tests(suite: str) -> None:
    from weft.bench.suites import SUITES
    from weft.results.figure_tables import print_figures
    from weft.system.consoles import make_console

    rows = [[test.section, test.name, test.objective] for test in SUITES[suite].tests]
    print_figures(make_console(), SUITES[suite].draft, ["section", "test", "objective"], rows, ["test", "objective"])


def _print_report(report: BenchReport) -> None:
    from rich.markup import escape

    from weft.bench import report_parts as parts
    from weft.results.figure_tables import print_report_table
    from weft.system.consoles import make_console

    console: Any = make_console()
    for table, names in (
        (parts.kpi_table(report), ["KPI", "test", "value", "unit", "condition"]),
        (parts.status_table(report), ["section", "test", "variant", "status", "reason"]),
    ):
        print_report_table(console, table, names, "bold")
    if found := parts.anomalies(report):
        console.print("\n[bold]Anomalies[/bold]")
        for line in found:
            console.print(f"  {escape(line)}")
    console.print(f"\n{escape(parts.verdict(report))}", highlight=False)
