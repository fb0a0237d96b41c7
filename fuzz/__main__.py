"""`python -m fuzz`: a long run, or the replay of cases."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fuzz.supervisor import fuzz
from fuzz.targets import TARGETS


@click.command()
@click.argument("target", type=click.Choice(sorted(TARGETS)))
@click.argument("cases", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--minutes", default=1.0, show_default=True, type=click.FloatRange(min=0), help="How long to run.")
@click.option("--seed", default=1, show_default=True, help="Of all choices.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Findings, corpus, figures [fuzz-TARGET].",
)
def main(target: str, cases: tuple[Path, ...], minutes: float, seed: int, output: Path | None) -> None:
    """Fuzz TARGET, or run the CASES given. Exit code 1 if anything was found."""
    if cases:
        runner = TARGETS[target]()
        for path in cases:
            click.echo(f"{path}: {runner.execute(path.read_bytes())}")
        return
    folder = output or Path(f"fuzz-{target}")
    statistics = fuzz(TARGETS[target], folder, seed, minutes * 60)
    click.echo(statistics.table())
    if statistics.findings:
        click.echo(f"findings are in {folder / 'findings'}", err=True)
        sys.exit(1)


main()
