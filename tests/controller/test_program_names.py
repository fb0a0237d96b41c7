"""Facts that the controller and p4/ both state are the same in both."""

from __future__ import annotations

import re
from pathlib import Path

from weft.controller.counters import OUTCOME_NAMES
from weft.controller.features.parameter_cache import MAX_CACHED_BLOCKS
from weft.controller.services import MAX_CELLS, MAX_CLIENT_ENTRIES
from weft.topologies import addressing
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN
from weft.traffic import service_format

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
    for ip_version in (4, 6):
        prefix = re.search(rf"RESULT_GROUP_IPV{ip_version}\s*= (0x\w+)", text)
        mac = re.search(rf"RESULT_GROUP_MAC_IPV{ip_version}\s*= (0x\w+)", text)
        assert prefix is not None
        assert mac is not None
        group = addressing.result_group_address(0x0102, ip_version)
        group_mac = addressing.result_group_mac(0x0102, ip_version)
        assert int(group) == int(prefix.group(1), 16) << 16 | 0x0102
        assert int(group_mac.replace(":", ""), 16) == int(mac.group(1), 16) << 16 | 0x0102


def test_bitmap_and_cpu_port_are_the_program_s() -> None:
    width = re.search(r"#define AGGREGATION_CHILDREN (\d+)", source("include/aggregation.p4"))
    port = re.search(r"CPU_PORT = (\d+)", source("include/headers.p4"))
    assert width is not None
    assert port is not None
    assert int(width.group(1)) == DEFAULT_TREE_CHILDREN
    assert int(port.group(1)) == addressing.CPU_PORT


def test_services_are_the_program_s() -> None:
    text, headers = source("include/services/synchronisation.p4"), source("include/services/headers.p4")
    for name, value in (("SERVICE_CELLS", MAX_CELLS), ("SERVICE_CLIENT_ENTRIES", MAX_CLIENT_ENTRIES)):
        assert re.search(rf"#define {name}\s+{value}\n", text), name
    for operation in service_format.Operation:
        assert re.search(rf"bit<8> {operation.name}\s*= {operation.value};", text), operation
    for ip_version, bits in ((4, 32), (6, 128)):
        prefix = re.search(rf"SERVICE_GROUP_IPV{ip_version}\s*= (0x\w+)", text)
        assert prefix is not None
        group = addressing.service_group_address(0x0102, ip_version)
        assert int(group) == int(prefix.group(1), 16) << 16 | 0x0102
        assert int(group).bit_length() <= bits
    assert f"QP_SERVICE = 0x{service_format.REQUEST_QP:X};" in headers
    assert re.search(rf"UDP_LENGTH_SERVICE\s*= {service_format.UDP_LENGTH};", headers)


def test_parameter_caches_are_the_program_s() -> None:
    headers = source("include/services/parameter_headers.p4")
    assert f"#define CACHE_ENTRIES {MAX_CACHED_BLOCKS}\n" in source("include/services/parameter_cache.p4")
    assert f"QP_PARAMETER_STORE  = 0x{service_format.PARAMETER_STORE_QP:X};" in headers
    assert f"QP_PARAMETER_CLIENT = 0x{service_format.PARAMETER_CLIENT_QP:X};" in headers
    assert re.search(rf"UDP_LENGTH_PARAMETER\s+= {service_format.PARAMETER_UDP_LENGTH};", headers)
    length = service_format.PARAMETER_UDP_LENGTH + service_format.BLOCK_BYTES
    assert re.search(rf"UDP_LENGTH_PARAMETER_BLOCK = {length};", headers)
