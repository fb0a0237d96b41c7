"""Facts that the controller and p4/ both state are the same in both."""

from __future__ import annotations

import re
from pathlib import Path

from controller.counters import OUTCOME_NAMES
from controller.jobs import group_address, group_mac
from controller.telemetry_int import RATE_GBPS_OF_CODE
from controller.trees import MAX_CHILDREN
from topologies import addressing
from traffic import aggregation_format
from traffic.int_stack import RATE_CODE_BPS

P4_FOLDER = Path(__file__).parents[2] / "p4"


def source(name: str) -> str:
    return (P4_FOLDER / name).read_text(encoding="utf-8")


def test_outcomes_are_the_program_s() -> None:
    body = re.search(r"enum bit<8> Outcome \{(.*?)\}", source("include/aggregation.p4"), re.DOTALL)
    assert body is not None
    values = {int(value): name.lower() for name, value in re.findall(r"(\w+)\s*=\s*(\d+)", body.group(1))}
    assert tuple(values[index] for index in range(len(values))) == OUTCOME_NAMES


def test_result_groups_are_the_program_s() -> None:
    text = source("include/aggregation.p4")
    ipv4 = re.search(r"RESULT_GROUP_IPV4 = (0x\w+)", text)
    mac = re.search(r"RESULT_GROUP_MAC\s*= (0x\w+)", text)
    assert ipv4 is not None
    assert mac is not None
    assert int(group_address(0x0102)) == int(ipv4.group(1), 16) << 16 | 0x0102
    assert int(group_mac(0x0102).replace(":", ""), 16) == int(mac.group(1), 16) << 16 | 0x0102


def test_bitmap_and_cpu_port_are_the_program_s() -> None:
    width = re.search(r"bit<(\d+)>\s+full_bitmap;", source("include/aggregation.p4"))
    port = re.search(r"CPU_PORT = (\d+)", source("include/headers.p4"))
    assert width is not None
    assert port is not None
    assert int(width.group(1)) == MAX_CHILDREN
    assert int(port.group(1)) == addressing.CPU_PORT


def test_hosts_read_the_same_rate_codes_and_groups() -> None:
    known = {code: rate_bps // 10**9 for code, rate_bps in RATE_CODE_BPS.items() if rate_bps}
    assert known == RATE_GBPS_OF_CODE
    assert aggregation_format.group_ipv4(0xABCD) == str(group_address(0xABCD))
    assert aggregation_format.group_mac(0xABCD) == group_mac(0xABCD)
