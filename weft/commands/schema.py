"""`weft schema`: what a scenario file may hold."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="The reference page (docs/scenario.md) instead."
)
def schema(as_markdown: bool) -> None:
    """Print the JSON Schema of scenario files, with which editors complete and check them."""
    from weft.scenario.reference import json_schema, markdown

    click.echo(markdown() if as_markdown else json_schema(), nl=False)
