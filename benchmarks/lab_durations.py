"""Measure how long the commands of labs' pages take, for labs/durations.csv and the sentence on each page.

    .venv/bin/python benchmarks/lab_durations.py [LAB…]    measure these labs (default: all) and rewrite table and pages
    .venv/bin/python benchmarks/lab_durations.py --render  rewrite the pages from the table, without a run

Every lab begins with an empty cache, so P4 programs are compiled. A command in virtual time counts with its wall time
or its processor time, whichever is less: on a busy machine its wall time says more about the other programs. The run in
Mininet counts with its wall time. It needs root and is measured with a warm cache; without root, the table keeps it.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from weft.errors import WeftError
from weft.labs.console import examples_of
from weft.labs.durations import LabDuration, pages_with_durations, read_durations, write_durations
from weft.labs.page import LabPage, read_lab_page
from weft.paths import ROOT
from weft.system.shipped_labs import ShippedLab, find_lab, shipped_labs

_LINKED = ("benchmarks", "docs", "examples", "labs", "p4")
_IN_MININET = re.compile(r"sudo \.venv/bin/weft (run labs/[^`…\n]+)(?=[`\n])")


def commands_of(page: LabPage) -> list[str]:
    """Return the commands of a lab's page that run without root, in order."""
    return [
        example.command
        for section in page.sections
        for block in section.blocks
        if block.language == "console"
        for example in examples_of(block.lines_inside, block.first_line + 1)
    ]


def mininet_command(page: LabPage) -> str | None:
    """Return the page's first run in Mininet; None if it names none completely."""
    for section in page.sections:
        for block in section.blocks:
            # A paragraph may break a command over two lines.
            text = block.source if block.kind == "fence" else " ".join(block.source.split())
            if found := _IN_MININET.search(text + "\n"):
                return ".venv/bin/weft " + found[1]
    return None


def seconds_of(command: str, directory: Path, cache: Path) -> tuple[float, float]:
    """Run a command; return its wall time and its processor time, children included. Raises CalledProcessError."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "WEFT_CACHE_DIR": str(cache), "NO_COLOR": "1"}
    subprocess.run(["bash", "-c", command], cwd=directory, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(lab: ShippedLab, before: LabDuration | None) -> LabDuration:
    """Measure a lab; without root or Mininet, its run there keeps the duration it had."""
    page = read_lab_page(lab.folder / "README.md")
    in_mininet = mininet_command(page)
    with _workplace() as (directory, cache):
        virtual_s = sum(min(seconds_of(command, directory, cache)) for command in commands_of(page))
        duration = LabDuration(virtual_s, before.mininet_s if before and in_mininet else None)
        if in_mininet and os.geteuid() == 0 and shutil.which("mn"):
            wall_s, _ = seconds_of(in_mininet, directory, cache)
            duration = replace(duration, mininet_s=wall_s)
    return duration


@contextmanager
def _workplace() -> Iterator[tuple[Path, Path]]:
    """Make a directory in which a page's commands work as in the checkout, and an empty cache."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made) / "checkout"
        directory.mkdir()
        for name in _LINKED:
            (directory / name).symlink_to(ROOT / name)
        (directory / ".venv").symlink_to(sys.prefix)
        yield directory, Path(made) / "cache"


def render() -> None:
    """Rewrite the pages from the table, and name those that changed."""
    for page, text in pages_with_durations(read_durations(), [lab.folder for lab in shipped_labs()]).items():
        if page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))


def main(arguments: Sequence[str]) -> None:
    """Measure, or only render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", metavar="LAB", help="name or number of a lab")
    parser.add_argument("--render", action="store_true", help="rewrite the pages without a run")
    options = parser.parse_args(arguments)
    if options.render:
        render()
        return
    durations = read_durations()
    for lab in [find_lab(name) for name in options.labs] or shipped_labs():
        durations[lab.name] = measured(lab, durations.get(lab.name))
        print(f"{lab.name}: {durations[lab.name].sentence}", flush=True)
        write_durations(durations)
    render()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except WeftError as error:
        sys.exit(f"error: {error}")
