"""`weft completion`: the shell completes commands, options, files and labs."""

from __future__ import annotations

import click

from weft.cli import COMPLETE_VARIABLE
from weft.system.completion import SHELLS, place_of, script
from weft.system.writing import written_whole


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--install", is_flag=True, help="Write the script to the folder where SHELL looks for this user's.")
@click.pass_context
def completion(context: click.Context, shell: str, install: bool) -> None:
    """Print the script with which SHELL completes commands, options, files and `lab:NAME`.

    `source <(weft completion bash)` tries it in this shell. --install says what is left to do; it edits none of your
    files, such as ~/.bashrc.
    """
    command = context.find_root().command
    text = script(shell, command, COMPLETE_VARIABLE)
    if not install:
        click.echo(text, nl=False)
        return
    file, left_to_do = place_of(shell, str(command.name))
    file.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(file) as partial:
        partial.write_text(text, encoding="utf-8")
    click.echo(f"wrote {file}; {left_to_do}")
