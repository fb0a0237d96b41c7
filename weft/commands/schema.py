"""`weft schema`: what a scenario file may hold, and what results.json holds."""

from __future__ import annotations

import click


@click.command()
@click.option("--markdown", "as_markdown", is_flag=True, help="The reference page (docs/scenario.md) instead.")
@click.option(
    "--results",
    "of_results",
    is_flag=True,
    help="What results.json holds (docs/results-reference.md) instead.",
)
def schema(as_markdown: bool, of_results: bool) -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them."""
    from weft.results.reference import results_reference
    from weft.scenario.reference import json_schema, markdown

    if as_markdown and of_results:
        raise click.UsageError("--markdown and --results are two pages: name one")
    if of_results:
        click.echo(results_reference(), nl=False)
    else:
        click.echo(markdown() if as_markdown else json_schema(), nl=False)
