"""Cases that were findings once: each comes out as it should now."""

from pathlib import Path

import pytest

from fuzz.targets import TARGETS

FOLDER = Path(__file__).parent / "regressions"
CASES = sorted(path for path in FOLDER.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_found_stays_mended(path: Path) -> None:
    assert TARGETS[path.parent.name]().execute(path.read_bytes())
