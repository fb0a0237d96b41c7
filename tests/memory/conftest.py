"""Parts every test of switch memory needs."""

import pytest

from weft.engine import Engine


@pytest.fixture
def engine() -> Engine:
    return Engine(seed=1)
