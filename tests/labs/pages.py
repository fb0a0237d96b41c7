"""Pages whose examples are run: fenced `console` blocks of commands, each followed by what it prints.

Those of a lab's page are run as the lab's notebook, which is made from the page and has a cell for each.

A line that holds only `…` stands for any number of lines that the page leaves out. Everything else is compared line
by line, so a page says what its run says. Blocks in other languages, or in none, are for people alone (Mininet, a
browser, a second terminal).
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

from plotted import check_plots
from weft.labs.console import Example, examples_of
from weft.labs.notebook import SKIPPED, notebook_of
from weft.labs.page import read_lab_page
from weft.paths import ROOT

DOCS = [
    ROOT / "docs" / name
    for name in (
        "calibrate.md",
        "comparing.md",
        "cost.md",
        "goodput.md",
        "host.md",
        "in-network.md",
        "lint.md",
        "parameter-server.md",
        "power.md",
        "rdma.md",
        "routing.md",
        "storage.md",
        "topologies.md",
        "uet.md",
        "why.md",
    )
]
SOLUTIONS = [page for page in sorted((ROOT / "labs").glob("*/solution.md")) if "```console" in page.read_text("utf-8")]
LABS = sorted((ROOT / "labs").glob("*/README.md"))
PAGES = [ROOT / "README.md", *LABS, *SOLUTIONS, *DOCS]
"""tests/labs/test_pages.py runs every `console` block of these pages."""

LEFT_OUT = "…"
_FENCE = re.compile(r"^```(\w*)\s*$")
_LINKED = ("labs", "docs", "examples", "p4")


def examples(page: Path) -> list[Example]:
    """Return a page's examples in order."""
    return [example for start, block in _console_blocks(page) for example in examples_of(block, start)]


def _console_blocks(page: Path) -> Iterator[tuple[int, list[str]]]:
    language: str | None = None
    block: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines()):
        fence = _FENCE.match(line)
        if fence is None:
            block.append(line)
        elif language is None:
            language, block = fence[1], []
        else:
            if language == "console":
                yield number - len(block), block
            language = None


def workplace(directory: Path, root: Path) -> Path:
    """Make a directory from which a page's commands work as from the repository, and where they may write."""
    for name in _LINKED:
        (directory / name).symlink_to(root / name)
    (directory / ".venv").symlink_to(sys.prefix)
    return directory


def outputs_of_commands(page: Path, directory: Path) -> list[list[str]]:
    """Run a page's commands and return the lines that each prints to its standard output; raise if one fails."""
    return [output_of(example.command, directory) for example in examples(page)]


def outputs_of_notebook(page: Path, directory: Path) -> list[list[str]]:
    """Run the notebook of a lab's page, as `outputs_of_commands` its commands; check the points that it plots."""
    notebook = nbformat.from_dict(notebook_of(read_lab_page(page)))
    # No TCP ports, which are drawn before they are taken: another test may take one meanwhile.
    sockets = Config(KernelManager={"transport": "ipc", "ip": str(directory / "kernel")})
    client = NotebookClient(
        notebook,
        config=sockets,
        timeout=900,
        startup_timeout=300,
        on_notebook_start=_leave_signals,
        resources={"metadata": {"path": str(directory)}},
    )
    asyncio.run(client.async_execute(env=environment()))
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] for cell in cells if SKIPPED in tags(cell))
    check_plots(notebook, directory)
    return [_printed(cell) for cell in command_cells(notebook)]


def _leave_signals(notebook: nbformat.NotebookNode) -> None:
    """Have Ctrl-C end the tests; nbclient has it end the kernel alone, and a second one is lost."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().remove_signal_handler(number)


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """Return the tags of a notebook's cell."""
    return list(cell["metadata"].get("tags", []))


def command_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells that run the page's commands, without those that need root."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.startswith("%%bash") and SKIPPED not in tags(cell)
    ]


def _printed(cell: nbformat.NotebookNode) -> list[str]:
    text = "".join(output["text"] for output in cell.outputs if output.get("name") == "stdout")
    assert "\x1b" not in text
    return [line.rstrip() for line in text.splitlines()]


def environment() -> dict[str, str]:
    """Return the environment of a page's commands: this Weft, and output as on a page."""
    return os.environ | {
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


def output_of(command: str, directory: Path) -> list[str]:
    """Run a command and return the lines of its standard output; raise if it fails."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
    return [line.rstrip() for line in done.stdout.splitlines()]


def parts(shown: Sequence[str]) -> list[list[str]]:
    """Split what a page shows at its ellipses; where it begins or ends with one, the part there is empty."""
    found: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line.rstrip())
    return found


def difference(shown: Sequence[str], printed: Sequence[str]) -> str:
    """Return what of the shown lines was not printed in this order, as a diff; empty if all was."""
    first, *others = parts(shown)
    if list(printed[: len(first)]) != first or (not others and len(printed) != len(first)):
        return _diff(first, printed)
    at = len(first)
    for position, part in enumerate(others):
        places: Sequence[int] = range(at, len(printed) - len(part) + 1)
        if position == len(others) - 1 and part:  # nothing is left out behind the last one
            places = places[-1:]
        place = next((each for each in places if list(printed[each : each + len(part)]) == part), None)
        if place is None:
            return _diff(part, printed[at:])
        at = place + len(part)
    return ""


def _diff(shown: Sequence[str], printed: Sequence[str]) -> str:
    return "\n".join(difflib.unified_diff(list(shown), list(printed), "page", "run", lineterm="", n=1000))


def renewed(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return the shown lines with their words and numbers as printed now: each part becomes what resembles it most.

    Where nothing is shown yet, everything is.
    """
    if not shown:
        return list(printed)
    lines: list[str] = []
    at = 0
    for position, part in enumerate(parts(shown)):
        if position:
            lines.append(LEFT_OUT)
        if not part:
            continue
        ends = range(at, max(at, len(printed) - len(part)) + 1)
        place = at if position == 0 else max(ends, key=lambda each: _likeness(part, printed[each : each + len(part)]))
        lines += printed[place : place + len(part)]
        at = place + len(part)
    return lines


def _likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """Words first: of lines that differ in their numbers alone, the one with most of them in common."""
    pairs = list(zip(one, other, strict=False))
    return sum(_ratio(_shape(a), _shape(b)) + _ratio(a, b) / 10 for a, b in pairs)


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _shape(line: str) -> str:
    return " ".join(re.sub(r"\d+", "0", line).split())


def renew(page: Path, outputs: Sequence[tuple[Example, Sequence[str]]]) -> None:
    """Write a page anew with what its commands print now."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for example, printed in reversed(outputs):
        end = example.first_line + len(example.shown)
        lines[example.first_line : end] = renewed(example.shown, printed)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def links_of(source: str) -> list[tuple[str, str, str]]:
    """Return exclamation mark, text and target of the links of Markdown that lead to files."""
    found = re.findall(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", source)
    return [link for link in found if "://" not in link[2]]
