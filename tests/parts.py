"""`--part=K/N`: one of N parts of the long tests, which are those marked slow or mininet.

The parts have no test in common, and together they are all tests. Tests that follow one another are in different parts,
so each part takes about as long as any other. Tests of a module marked `one_part` share what takes long, so they are in
the same part; tests marked `every_part` and all other tests are in each of them. `--part=commit/N` takes K from the
commit, so that a commit always has the same tests and each part has its turn. The choice is made where the tests are
reported; the workers of pytest-xdist get its result.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

LONG = ("slow", "mininet")
IN_EVERY_PART = "every_part"
IN_ONE_PART = "one_part"
OF_COMMIT = "commit"


def add_option(parser: pytest.Parser) -> None:
    """Declare `--part=K/N`."""
    parser.addoption(
        "--part",
        metavar="K/N",
        help="run the K-th of N parts of the tests marked slow or mininet, and all others; "
        f"`{OF_COMMIT}/N`: the part that the commit has",
    )


def register(config: pytest.Config) -> None:
    """Choose a part, if `--part` is given."""
    if config.option.part is None:
        return
    number, count = part_of(config.option.part, config.rootpath)
    config.option.part = f"{number}/{count}"
    config.pluginmanager.register(Part(number, count))


def part_of(text: str, root: Path) -> tuple[int, int]:
    """Return which part, from 1, of how many. Raise UsageError for anything but K/N and commit/N."""
    number, _, count = text.partition("/")
    if count.isdecimal() and int(count) > 0:
        if number == OF_COMMIT:
            return part_of_commit(root, int(count)), int(count)
        if number.isdecimal() and 1 <= int(number) <= int(count):
            return int(number), int(count)
    raise pytest.UsageError(f"--part={text}: valid: 1/8 to 8/8, say, or {OF_COMMIT}/8")


def part_of_commit(root: Path, count: int) -> int:
    """Return the part of the commit that is checked out; without Git, as in an unpacked archive, the first."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 1
    return int(done.stdout, 16) % count + 1


class Part:
    """Deselects the long tests of other parts."""

    def __init__(self, number: int, count: int) -> None:
        self._number, self._count = number, count

    def pytest_report_header(self) -> str:
        return f"long tests: --part={self._number}/{self._count}; make test-all runs all parts"

    @pytest.hookimpl(trylast=True)  # -m and -k have chosen: they leave no part without tests
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        long = [each for each in items if is_shared_out(each)]
        numbers = {key: at for at, key in enumerate(dict.fromkeys(map(kept_together, long)))}
        others = [each for each in long if numbers[kept_together(each)] % self._count != self._number - 1]
        if not others:
            return
        config.hook.pytest_deselected(items=others)
        dropped = set(others)
        items[:] = [each for each in items if each not in dropped]


def is_shared_out(item: pytest.Item) -> bool:
    """Return whether a test is in one part only."""
    return not item.get_closest_marker(IN_EVERY_PART) and any(map(item.get_closest_marker, LONG))


def kept_together(item: pytest.Item) -> str:
    """Return the same for the tests that are to be in one part."""
    return str(item.path) if item.get_closest_marker(IN_ONE_PART) else item.nodeid
