"""`weft paper`: repeat what a paper measured, and show its published values next to Weft's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import EXISTING_FILE

if TYPE_CHECKING:
    from weft.papers import PaperResult


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from weft.papers import STUDIES

    return [name for name in STUDIES if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--list", "as_list", is_flag=True, help="List the papers, and do nothing else.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Directory of the runs, paper.html and paper.json."
)
@click.option(
    "--scale",
    type=click.Choice(["full", "reduced"]),
    default="full",
    show_default=True,
    help="full: the paper's set-up, up to an hour. reduced: a minute at most, for orders and courses.",
)
@click.option("--workers", type=click.IntRange(1), help="Runs at a time; default: as many as processors.")
@click.option("--flows", type=EXISTING_FILE, help="The authors' list of flows, for papers whose runs have one.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def paper(
    name: str | None,
    as_list: bool,
    out: Path | None,
    scale: str,
    workers: int | None,
    flows: Path | None,
    as_json: bool,
) -> int:
    """Run what a paper measured and show its published values next to Weft's, with a verdict.

    The verdict is computed. reproduced: every claim is within its tolerance. reproduced in shape: orders and courses
    hold, values differ. Exits with 1 if the paper is not reproduced.

    Runs that have finished in --out before are not repeated, so that an interrupted paper goes on where it was.
    """
    from weft.commands.trial_progress import trial_progress
    from weft.papers import STUDIES, Scale, Verdict, run_paper

    if as_list:
        for each in STUDIES.values():
            click.echo(f"{each.name:<24} {each.authors}, {each.venue} {each.year}: {each.title}")
        return 0
    if name is None or out is None:
        raise click.UsageError("name a paper and --out DIR, or give --list")
    with trial_progress("paper") as progress:
        result = run_paper(STUDIES.named(name), out, Scale(scale), workers, flows, progress)
    if as_json:
        print((out / "paper.json").read_text(encoding="utf-8"), end="")
    else:
        _print(result, out)
    return int(result.verdict is Verdict.NOT_REPRODUCED)


def _print(result: PaperResult, out: Path) -> None:
    from weft.papers.markdown import verdict_sentence
    from weft.results.figure_tables import print_report_table
    from weft.system.consoles import make_console

    console = make_console()
    click.echo(f"{result.citation}\n\nMeasured by the authors: {result.measured_by_authors}\n\nRun: {result.run_here}")
    for table in (result.claims_table, result.shapes_table):
        print_report_table(console, table, (*table.columns[:1], "where", "verdict"))
    for line in (*result.explanations, *result.notes):
        click.echo(f"· {line}")
    click.echo(f"\nVerdict: {verdict_sentence(result)} Page: {out / 'paper.html'}")
