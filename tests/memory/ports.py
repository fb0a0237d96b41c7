"""Ports, links and memory put together as tests of switch memory need them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.engine import Collector, Engine, Link, TransmitPort

GBPS = 10**9


@dataclass
class Output:
    """An egress port of a switch and what has left it."""

    port: TransmitPort
    link: Link
    collector: Collector


def make_output(engine: Engine, rate_bps: int, **options: object) -> Output:
    """A transmit port whose link ends at a collector."""
    link = Link(engine)
    collector = Collector(engine)
    link.connect(collector)
    return Output(TransmitPort(engine, link, rate_bps=rate_bps, **options), link, collector)  # type: ignore[arg-type]
