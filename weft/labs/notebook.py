"""Converts a lab's page to a notebook: prose, a cell for each command and each plot, without output.

The page stays the only source. The output that it shows comes from its tests, so the notebook omits it and shows the
reader's own run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

from weft.errors import EnvironmentLacksError
from weft.hints import install_extra
from weft.labs.console import examples_of
from weft.labs.page import Block, LabPage, Section

COPIED = ("labs", "docs", "examples")
"""Folders copied to the notebooks' folder, so that the pages' commands and links work as in a checkout."""

SKIPPED = "skip-execution"
"""Tag of cells that nbclient skips when it runs a whole notebook."""

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
"""A link or picture in Markdown: "!" or nothing, its text, its target."""
POINTER = re.compile(r"(?:The )?\[[^\]]*\]\([^)\s]+\)\.?")
"""A paragraph that consists of a single link."""
_LAB_PAGE = re.compile(r"labs/([\w-]+)/README\.md$")
_NEEDS_ROOT = re.compile(r"`sudo \.venv/bin/weft (run [^`…]+)`")
_SET_UP = """\
# Commands below find the Weft of this notebook's kernel, and run in this folder.
import os
import sys

os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
os.environ.update(COLUMNS="110", NO_COLOR="1")
os.environ.pop("FORCE_COLOR", None)  # kernels set it, and progress would be drawn as on a terminal"""
_AS_ROOT = """\
%%bash
# The same in Mininet, which needs root.
as_root=
[[ $(id -u) -eq 0 ]] || as_root="sudo -n"
if ! command -v mn >/dev/null; then
  echo "skipped: Mininet is not installed"
elif ! $as_root true 2>/dev/null; then
  echo "skipped: this needs root, and sudo asks for a password"
else
  $as_root "$(command -v weft)" {arguments}
fi"""
_LAB_FILE = re.compile(r"\blabs/[\w./-]+")
_NOT_HERE = "*The files of this command are not in this notebook's folder:*"
_ANSWER = "*Your answer:*"


IsThere = Callable[[str], bool]
"""Returns whether a path, relative to the notebook's folder, exists."""


def notebook_of(page: LabPage, is_there: IsThere = lambda _: True) -> dict[str, Any]:
    """Return a lab's notebook (nbformat 4.5, validated); equal pages give equal notebooks.

    Commands and links that name missing files become text.

    Raises EnvironmentLacksError without nbformat, BadInputError for a page with another form.
    """
    try:
        from nbformat import v4, validate
    except ImportError as error:
        raise EnvironmentLacksError(f"notebooks need nbformat: {install_extra('notebook')}") from error
    cells: list[Any] = []
    for kind, source, tags in _cells(page, is_there):
        new = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
        cells.append(new(source, id=f"cell-{len(cells)}", metadata={"tags": tags} if tags else {}))
    notebook: dict[str, Any] = v4.new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
    )
    validate(notebook)
    return notebook


def _cells(page: LabPage, is_there: IsThere) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the kind, source and tags of each cell."""
    lab = page.path.resolve().parent.name
    for number, section in enumerate(page.sections):
        heading = f"{'##' if number else '#'} {section.title}"
        yield from _section_cells(
            section,
            heading,
            lambda source: relinked(source, lab, lambda path, fragment: _beside(path, fragment, is_there)),
            is_there,
        )
        if number == 0:
            yield "code", _SET_UP, []


def _section_cells(
    section: Section, heading: str, relink: Callable[[str], str], is_there: IsThere
) -> Iterator[tuple[str, str, list[str]]]:
    prose = [heading]
    has_results = True
    for block in section.blocks:
        if section.title == "Questions" and block.kind == "ordered_list":
            for number, question in enumerate(block.items, 1):
                yield "markdown", "\n\n".join([*prose, f"**{number}.** {relink(question)}"]), []
                yield "markdown", _ANSWER, []
                prose = []
            continue
        commands = list(_command_cells(block, is_there))
        if block.language == "console":
            has_results = all(kind == "code" for kind, _, _ in commands)
        elif has_results and _is_plot(block):
            commands = [("code", "\n".join(block.lines_inside), [])]
        if block.language != "console" and not (commands and block.kind == "fence"):
            text = block.source if block.kind == "fence" else relink(block.source)
            leads_nowhere = POINTER.fullmatch(block.source.strip()) and not LINK.search(text)
            prose += [] if leads_nowhere else [text]
        if commands and prose:
            yield "markdown", "\n\n".join(prose), []
            prose = []
        yield from commands
    if prose:
        yield "markdown", "\n\n".join(prose), []


def _is_plot(block: Block) -> bool:
    """Return whether a block plots results: Python that needs nothing but Weft, which every kernel here has."""
    return block.language == "python" and block.lines_inside[:1] == ["import weft"]


def _command_cells(block: Block, is_there: IsThere) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a cell for each command of a console block, or for the command that a paragraph runs as root."""
    if block.language == "console":
        for example in examples_of(block.lines_inside, block.first_line + 1):
            source = on_path(example.source)
            if all(is_there(path) for path in _LAB_FILE.findall(source)):
                yield "code", f"%%bash\n{source}", []
            else:
                yield "markdown", f"{_NOT_HERE}\n\n```\n{source}\n```", []
    elif block.kind != "fence":
        for arguments in _NEEDS_ROOT.findall(" ".join(block.source.split())):
            yield "code", _AS_ROOT.format(arguments=arguments), [SKIPPED]


def on_path(command: str) -> str:
    """Return a page's command with `weft` and `python` taken from the PATH instead of a checkout."""
    return re.sub(r"(?<![\w./])\.venv/bin/(weft|python)\b", r"\1", command)


def relinked(source: str, lab: str, target_of: Callable[[str, str], str | None]) -> str:
    """Return Markdown of a lab's page with its links adapted to another place.

    `target_of` gets a link's path in the project and its fragment, and returns the new target; for None, only the
    link's text is kept.
    """

    def new(link: re.Match[str]) -> str:
        picture, text, target = link.groups()
        path, hash_mark, anchor = target.partition("#")
        if "://" in target or not path:
            return link[0]
        path = posixpath.normpath(posixpath.join("labs", lab, path))
        found = target_of(path, hash_mark + anchor)
        return text if found is None else f"{picture}[{text}]({found})"

    return LINK.sub(new, source)


def _beside(path: str, fragment: str, is_there: IsThere) -> str | None:
    """Return a link's target relative to the notebook's folder; None if it is missing there."""
    if path.partition("/")[0] not in COPIED or not is_there(path):
        return None
    other = _LAB_PAGE.match(path)
    return f"{other[1]}.ipynb" if other else f"{path}{fragment}"
