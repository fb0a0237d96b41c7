"""Parts every engine test needs."""

from collections.abc import Callable

import pytest

from weft.engine import Collector, Engine, Link, TransmitPort

Line = tuple[TransmitPort, Link, Collector]


@pytest.fixture
def engine() -> Engine:
    return Engine(seed=1)


@pytest.fixture
def make_line(engine: Engine) -> Callable[..., Line]:
    """A transmit port, the link behind it and a collector at the far end (its port 0)."""

    def make(
        rate_bps: int = 0, queue_capacity_bytes: int = 1 << 20, classes: int = 8, **link_options: float | str
    ) -> Line:
        link = Link(engine, **link_options)  # type: ignore[arg-type]
        collector = Collector(engine)
        link.connect(collector)
        port = TransmitPort(engine, link, rate_bps=rate_bps, queue_capacity_bytes=queue_capacity_bytes, classes=classes)
        return port, link, collector

    return make
