"""`weft presets`: fabrics that engineers know by name, and where each of their values comes from."""

from __future__ import annotations

import click


@click.command()
@click.argument("name", required=False)
def presets(name: str | None) -> None:
    """List the presets that a scenario may name (preset: NAME), or print the keys of NAME with their sources.

    What is printed for NAME is YAML: a scenario with the same keys, to change as you like.
    """
    from weft.scenario.fabric_presets import fabric_preset, fabric_preset_names, preset_text

    if name is not None:
        click.echo(preset_text(fabric_preset(name)), nl=False)
        return
    names = fabric_preset_names()
    width = max(map(len, names))
    for each in names:
        click.echo(f"{each:{width}}  {fabric_preset(each).summary}")
