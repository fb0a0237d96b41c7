"""The log of `weft switch` where it cannot be written."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.switch.cli.logs import LogOptions, require_complete, set_up


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Leave the loggers as they were."""
    root, own = logging.getLogger(), logging.getLogger("switch")
    before, level, others = root.handlers[:], root.level, own.handlers[:]
    own.handlers.clear()  # once Mininet is imported, every new logger has a handler of Mininet's
    yield
    root.handlers[:], root.level, own.handlers[:] = before, level, others


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_that_cannot_be_written_is_reported_once_and_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up(LogOptions(file=Path("/dev/full")))
    for _ in range(3):
        logging.getLogger("switch").error("something")
    said = capsys.readouterr().err
    assert said == "weft: /dev/full: the log is incomplete: No space left on device\n"
    with pytest.raises(OSError, match=r"the log is incomplete: No space left on device: '/dev/full'"):
        require_complete()


def test_a_log_with_room_is_complete(tmp_path: Path) -> None:
    set_up(LogOptions(file=tmp_path / "s1.log"))
    logging.getLogger("switch").error("something")
    require_complete()
    assert "something" in (tmp_path / "s1.log").read_text(encoding="utf-8")


def test_importing_mininet_leaves_the_class_of_loggers_alone() -> None:
    pytest.importorskip("mininet")
    program = "import logging, weft.clocks.real.network; print(logging.getLoggerClass() is logging.Logger)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
