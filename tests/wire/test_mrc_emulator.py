"""MRC packets of the engine read by another implementation, and its read by the engine.

WEFT_MRC_CLIENT_CLONE names a clone of github.com/anichol67/MRC-Client, an emulator of MRC end hosts made after the same
specification. docs/spec/mrc.md says where the two disagree.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.wire.mrc_samples import KINDS, Sample, number_of, sample
from weft.engine import _core
from weft.wire import Field, Header
from weft.wire.headers.mrc import MRC_BTH
from weft.wire.headers.network import ETHERNET, IPV6, UDP

CLONE = os.environ.get("WEFT_MRC_CLIENT_CLONE", "")
MANY = 10_000

pytestmark = pytest.mark.skipif(not CLONE, reason="WEFT_MRC_CLIENT_CLONE names no clone of anichol67/MRC-Client")

# Fields by the emulator's names, where those differ.
NAMES = {"rkey": "r_key", "dma_length": "dmalen", "immediate": "value", "cc_flags": "cc_fl"}
NAMES |= {"restore_cwnd": "r_c", "rcvd_units": "rcvd_bytes"}
ATTRIBUTES = {"ImmDt": "immdt", "CCState": "seth"}
OF_BTH = {"opcode": "opcode", "dqpn": "dqp", "ackreq": "a", "rtx": "rtx", "ts": "ts"}
OF_BTH |= {"psn": "psn", "pkey": "p_key", "padcount": "pad"}
TRANSPORT_AT = ETHERNET.size_bytes + IPV6.size_bytes + UDP.size_bytes


@pytest.fixture(scope="module")
def emulator() -> Iterator[tuple[ModuleType, ModuleType]]:
    """Return its headers and its parser."""
    assert (Path(CLONE) / "core" / "mrc_headers.py").is_file(), f"{CLONE} has no core/mrc_headers.py"
    sys.path.insert(0, CLONE)
    try:
        yield import_module("core.mrc_headers"), import_module("core.packet_parser")
    finally:
        sys.path.remove(CLONE)
        for name in [name for name in sys.modules if name == "core" or name.startswith("core.")]:
            del sys.modules[name]


def over_ipv6(kind: str, number: int) -> Sample:
    """Return packet after packet of a kind: the emulator reads no IPv4."""
    return sample(kind, 2 * number + 1)


def chosen(header: Header, values: dict[str, int]) -> dict[str, int]:
    """Return the numbers of a header that a sender chooses, by the emulator's names."""
    fields = [each for each in header.fields if isinstance(each, Field) and not each.is_fixed]
    return {NAMES.get(each.name, each.name): number_of(each, values[each.name]) for each in fields}


def part_of(packet: Any, header: Header) -> Any:
    part = getattr(packet, ATTRIBUTES.get(header.name, header.name.lower()))
    return part.cc_state if header.name == "CCState" else part


def disagreements(header: Header) -> tuple[str, ...]:
    """Return the fields that the emulator has elsewhere: the page says why Weft has them where it does."""
    return ("op",) if header.name == "EETH" else ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [500, pytest.param(MANY, marks=pytest.mark.slow)])
def test_the_emulator_reads_the_engine_s_packets(emulator: Any, kind: str, count: int) -> None:
    _, parser = emulator
    for number in range(count):
        drawn = over_ipv6(kind, number)
        built = _core.build_packet(drawn.native(), drawn.payload)  # type: ignore[arg-type]
        packet = parser.parse_packet(built)
        bth = packet.bth
        assert [getattr(bth, name) for name in OF_BTH.values()] == [drawn.bth[name] for name in OF_BTH]
        for header, values in drawn.extended:
            part = part_of(packet, header)
            for name, value in chosen(header, values).items():
                if name not in disagreements(header):
                    assert getattr(part, name) == value, (kind, number, header.name, name)
        assert packet.payload == drawn.payload + bytes(-len(drawn.payload) % 4)  # it leaves the pad in place


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [500, pytest.param(MANY, marks=pytest.mark.slow)])
def test_the_engine_reads_the_emulator_s_packets(emulator: Any, kind: str, count: int) -> None:
    """Its iCRC and its UDP port are not RoCEv2's, so the frame around its headers is Weft's."""
    module, _ = emulator
    for number in range(count):
        drawn = over_ipv6(kind, number)
        transport = module.BTH(**{theirs: drawn.bth[ours] for ours, theirs in OF_BTH.items()}).to_bytes()
        states = [chosen(header, values) for header, values in drawn.extended if header.name == "CCState"]
        for header, values in drawn.extended:
            if header.name == "CCState":
                continue
            fields = chosen(header, values)
            for name in disagreements(header):
                fields[name] = 0
            if header.name == "SETH":
                fields["cc_state"] = module.CCState(**states[0])  # type: ignore[assignment]
            transport += getattr(module, header.name)(**fields).to_bytes()
        transport += drawn.payload + bytes(-len(drawn.payload) % 4)
        read, payload = _core.parse_packet(drawn.framed(transport))
        expected = drawn.native()
        if "eeth" in expected["mrc"]:
            expected["mrc"]["eeth"]["op"] = 0
        assert (read, payload) == (expected, drawn.payload)


def test_where_the_two_disagree(emulator: Any) -> None:
    """As docs/spec/mrc.md says; a later version that agrees is to be noticed."""
    module, parser = emulator
    response = over_ipv6("MRC_ENDPOINT_RESPONSE", 0)
    ((header, values),) = response.extended
    probe = replace(response, extended=((header, values | {"op": 1}),))
    assert parser.parse_packet(probe.frame).eeth.op == 0
    assert module.EETH(op=1).to_bytes()[1] == 0x10
    assert probe.frame[TRANSPORT_AT + MRC_BTH.size_bytes + 1] == 0x04
    builder = import_module("core.packet_builder")
    assert builder.ROCE_UDP_PORT == 4971
    assert builder.compute_icrc(b"123456789") != 0xCBF43926
