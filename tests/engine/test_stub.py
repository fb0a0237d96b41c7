"""The stub of the native module is what `make stubs` writes, and dictionaries hold what it says."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.engine import Engine, Link, Nic, PortMac, SharedBuffer, TransmitPort, record_types
from weft.engine._core import ScaleUpDomain

ROOT = Path(__file__).parents[2]


def test_the_stub_is_current(tmp_path: Path) -> None:
    made = tmp_path / "_core.pyi"
    command = [sys.executable, ROOT / "engine" / "python" / "make_stub.py", "--output", made]
    subprocess.run(command, check=True, cwd=ROOT)
    stub = (ROOT / "weft" / "engine" / "_core.pyi").read_text(encoding="utf-8")
    assert stub == made.read_text(encoding="utf-8"), "the bindings have changed: run `make stubs`"


def test_every_statistic_says_what_it_is() -> None:
    for name, fields in record_types().items():
        assert fields, name
        assert all(kind for kind, _ in fields.values()), name
    assert all(meaning for _, meaning in record_types()["RcCounters"].values())


def port(engine: Engine) -> TransmitPort:
    return TransmitPort(engine, Link(engine), rate_bps=10**9)


def buffer_with_a_port(engine: Engine) -> SharedBuffer:
    buffer = SharedBuffer(engine, capacity_bytes=1 << 20)
    buffer.add_port(1)
    return buffer


def mac(engine: Engine) -> PortMac:
    made = PortMac(engine, port(engine), port(engine))
    made.enable_credits(source_mac="02:00:00:00:00:01", classes=[3], buffer_bytes=1 << 16, largest_frame_bytes=2048)
    return made


def nic_stats(engine: Engine) -> object:
    nic = Nic(engine, "nic")
    nic.add_port(port(engine), mac="02:00:00:00:00:01", addresses=["10.0.0.1"])
    return nic.stats(0)


STATS: dict[str, Callable[[Engine], object]] = {
    "LinkStats": lambda engine: Link(engine).stats(),
    "PortStats": lambda engine: port(engine).stats(),
    "ClassStats": lambda engine: port(engine).stats()["classes"][0],
    "BufferStats": lambda engine: buffer_with_a_port(engine).stats(),
    "BufferPortStats": lambda engine: buffer_with_a_port(engine).stats()["ports"][1],
    "IngressStats": lambda engine: buffer_with_a_port(engine).stats()["ports"][1]["ingress"][0],
    "PortMacStats": lambda engine: mac(engine).stats(),
    "CreditStats": lambda engine: mac(engine).stats()["credits"],
    "NicStats": nic_stats,
    "ScaleUpStats": lambda engine: ScaleUpDomain(engine, rate_bps=1, latency_ps=0, port_count=2).stats(0),
}


@pytest.mark.parametrize("name", STATS)
def test_dictionaries_have_the_keys_of_their_type(name: str) -> None:
    stats = STATS[name](Engine())
    assert isinstance(stats, dict)
    assert set(stats) == set(record_types()[name])
