"""`weft labs`: the labs that ship with Weft, and copies of them to work in."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from weft.cli import complete_lab
from weft.errors import BadInputError
from weft.labs.durations import read_durations, rounded
from weft.labs.folder import copy_to_work_in, make_notebooks
from weft.system.consoles import make_console
from weft.system.shipped_labs import CHECK_FILE, LAB_PREFIX, find_lab, shipped_labs


class _Labs(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a lab in its place is refused with the commands that take a lab."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            try:
                lab = find_lab(args[0].removeprefix(LAB_PREFIX))
            except BadInputError:
                lab = None
            if lab is None:
                raise
            known = f"'{args[0]}' is a lab, not a command; copy it: weft labs copy {lab.name}"
            raise click.UsageError(f"{known}, or run it: weft run {LAB_PREFIX}{lab.name}", ctx) from None


@click.group(cls=_Labs, invoke_without_command=True)
@click.pass_context
def labs(context: click.Context) -> None:
    """List the labs that ship with Weft; each has a page, README.md, in its folder.

    "takes" is how long the commands on that page take on two cores, without root.

    `weft run lab:NAME` runs one as it is, `weft labs copy NAME` makes a copy to change. NAME may be the lab's number.
    """
    if context.invoked_subcommand is not None:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("lab", no_wrap=True)
    table.add_column("what it shows", overflow="fold")
    table.add_column("takes", no_wrap=True)
    durations = read_durations()
    for lab in shipped_labs():
        taken = rounded(durations[lab.name].virtual_s) if lab.name in durations else ""
        table.add_row(LAB_PREFIX + lab.name, lab.title, taken)
    make_console().print(table)


WITHOUT_ANSWERS = click.option("--without-answers", is_flag=True, help="Leave the labs' solutions out.")


@labs.command()
@click.argument("name", shell_complete=complete_lab)
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@WITHOUT_ANSWERS
def copy(name: str, folder: Path | None, without_answers: bool) -> None:
    """Copy the lab NAME to FOLDER (default: a folder of its name), which must not exist.

    Commands of the copy's page, README.md, run in the copy; its docs are a link to this Weft's docs. If the lab has
    an exercise, `weft check FOLDER` says which of its goals the copy reaches.
    """
    lab = find_lab(name.removeprefix(LAB_PREFIX))
    target = folder or Path(lab.name)
    if target.exists():
        raise BadInputError(f"{target} exists already; give another folder: weft labs copy {lab.name} FOLDER")
    copy_to_work_in(lab, target, answers=not without_answers)
    checked = f"; weft check {target}" if (lab.folder / CHECK_FILE).is_file() else ""
    click.echo(f"{target}: read {target / 'README.md'}; weft run {target / lab.scenarios[0]}{checked}")


@labs.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_lab)
@WITHOUT_ANSWERS
def notebooks(folder: Path, names: tuple[str, ...], without_answers: bool) -> None:
    """Write notebooks of the labs NAME (default: all) to FOLDER, which must not exist, with the files that they use.

    Open them with JupyterLab in that folder. Needs the extra "notebook".
    """
    if folder.exists():
        raise BadInputError(f"{folder} exists already; give another folder: weft labs notebooks FOLDER")
    chosen = [find_lab(name.removeprefix(LAB_PREFIX)) for name in names] or shipped_labs()
    written = make_notebooks(list(dict.fromkeys(chosen)), folder, answers=not without_answers)
    click.echo(f"wrote {len(written)} notebooks; open them: jupyter lab --notebook-dir {folder}")
