"""The inside of hosts: matrices as `nvidia-smi topo -m` prints them, the choice of NICs, and ways of data.

Published: of a DGX H100 in https://github.com/vllm-project/vllm/issues/13855, of a DGX A100 in
https://github.com/NVIDIA/nccl/issues/1505, of an HGX H100 in https://github.com/sgl-project/sglang/issues/10070 (its
first row).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from weft.errors import BadInputError
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.scenario.host import host_routes
from weft.topologies import TopologyError
from weft.topologies.hosts.known import HOST_LAYOUTS
from weft.topologies.hosts.layout import Accelerator, Distance, HostLayout, HostNic, NumaNode, PciSwitch
from weft.topologies.hosts.pcie import PcieLink
from weft.topologies.hosts.routes import HostRoutes, RouteSettings
from weft.topologies.hosts.views import as_dict, connections, described, matrix

TWO_NODES = (NumaNode(0), NumaNode(1))
DGX_H100 = {
    0: "PXB NODE NODE NODE NODE NODE SYS SYS SYS SYS SYS SYS",
    1: "NODE NODE NODE PXB NODE NODE SYS SYS SYS SYS SYS SYS",
    2: "NODE NODE NODE NODE PXB NODE SYS SYS SYS SYS SYS SYS",
    3: "NODE NODE NODE NODE NODE PXB SYS SYS SYS SYS SYS SYS",
    4: "SYS SYS SYS SYS SYS SYS PXB NODE NODE NODE NODE NODE",
    5: "SYS SYS SYS SYS SYS SYS NODE NODE NODE PXB NODE NODE",
    6: "SYS SYS SYS SYS SYS SYS NODE NODE NODE NODE PXB NODE",
    7: "SYS SYS SYS SYS SYS SYS NODE NODE NODE NODE NODE PXB",
}
DGX_A100 = {
    0: "PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS SYS SYS",
    1: "PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS SYS SYS",
    2: "SYS SYS PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS",
    3: "SYS SYS PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS",
    4: "SYS SYS SYS SYS SYS SYS PXB PXB SYS SYS SYS SYS",
    5: "SYS SYS SYS SYS SYS SYS PXB PXB SYS SYS SYS SYS",
    6: "SYS SYS SYS SYS SYS SYS SYS SYS PXB PXB SYS SYS",
    7: "SYS SYS SYS SYS SYS SYS SYS SYS PXB PXB SYS SYS",
}
PUBLISHED = {
    "dgx-h100": (DGX_H100, "NV18", {"NIC1": "NIC2", "NIC7": "NIC8"}, ["0-55,112-167"] * 4 + ["56-111,168-223"] * 4),
    "dgx-a100": (
        DGX_A100,
        "NV12",
        {"NIC4": "NIC5", "NIC10": "NIC11"},
        [each for each in ("48-63,176-191", "16-31,144-159", "112-127,240-255", "80-95,208-223") for _ in range(2)],
    ),
}


def joined_to_nics(layout: HostLayout, part: str) -> list[str]:
    return [how for name, how in connections(layout)[part].items() if name.startswith("NIC")]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_matrix_is_the_one_that_machines_print(name: str) -> None:
    layout, (rows, nvlink, pairs, cpus) = HOST_LAYOUTS[name], PUBLISHED[name]
    joined = connections(layout)
    for gpu, row in rows.items():
        assert joined_to_nics(layout, f"GPU{gpu}") == row.split()
        assert [joined[f"GPU{gpu}"][f"GPU{other}"] for other in rows] == [
            "X" if other == gpu else nvlink for other in rows
        ]
    assert {one: other for one in pairs for other, how in joined[one].items() if how == "PIX"} == pairs
    assert joined["NIC0"]["NIC1"] == {"dgx-h100": "NODE", "dgx-a100": "PXB"}[name]
    lines = matrix(layout).split("\n")
    assert lines[0].endswith("NIC11\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID")
    assert [line.split("\t")[21] for line in lines[1:9]] == cpus
    assert lines[1].startswith(f"GPU0\t X \t{nvlink}\t")
    assert lines[1].endswith({"dgx-h100": "\t0-55,112-167\t0\t\tN/A", "dgx-a100": "\t48-63,176-191\t3\t\tN/A"}[name])
    assert lines[9].startswith("NIC0\tPXB\t")
    assert lines[9].endswith("SYS\t\t\t\t")
    assert all(joined[one][other] == joined[other][one] for one in joined for other in joined)


def test_a_switch_of_two_gpus_and_two_nics() -> None:
    assert joined_to_nics(HOST_LAYOUTS["hgx-h100"], "GPU0")[:4] == ["PIX", "PXB", "NODE", "NODE"]
    assert joined_to_nics(HOST_LAYOUTS["hgx-h100"], "GPU1")[:4] == ["PXB", "PIX", "NODE", "NODE"]


def test_parts_at_one_host_bridge() -> None:
    layout = HostLayout(
        TWO_NODES,
        accelerators=(Accelerator("numa0/a"), Accelerator("numa0"), Accelerator("numa0/b")),
        nics=(HostNic("numa0/a"),),
    )
    assert [joined_to_nics(layout, f"GPU{gpu}") for gpu in range(3)] == [["PHB"], ["NODE"], ["NODE"]]
    assert connections(layout)["GPU0"]["GPU1"] == "NODE"


@pytest.mark.parametrize(
    ("text", "bits_per_s"),
    [
        ("3x16", Fraction(8 * 10**9 * 16 * 128, 130)),
        ("4x8", Fraction(16 * 10**9 * 8 * 128, 130)),
        ("5x16", Fraction(32 * 10**9 * 16 * 128, 130)),
        ("6x16", Fraction(64 * 10**9 * 16 * 236, 256)),
    ],
)
def test_rates_of_pcie(text: str, bits_per_s: Fraction) -> None:
    link = PcieLink.read(text)
    overhead = 16 if text.startswith("6") else 24
    assert link.rate_bps(256) == int(bits_per_s * 256 / (256 + overhead))
    assert link.rate_bps(512) > link.rate_bps(128)


def routes(name: str, ranks: int, planes: int, **settings: Any) -> HostRoutes:
    return HostRoutes(HOST_LAYOUTS[name], RouteSettings(**settings), ranks, planes)


def names(links: Any) -> list[str]:
    return [link.name for link in links]


def test_ranks_take_the_nearest_nics() -> None:
    assert [of_rank[0].device for of_rank in routes("dgx-h100", 8, 1).routes] == [0, 3, 4, 5, 6, 9, 10, 11]
    assert [of_rank[0].device for of_rank in routes("dgx-a100", 8, 1).routes] == [0, 1, 2, 3, 6, 7, 8, 9]
    # Two planes by the two ports of a NIC; on a server, by the NICs of both sockets.
    assert [[each.device for each in of_rank] for of_rank in routes("hgx-h100", 8, 2).routes][1] == [1, 1]
    assert [each.device for each in routes("server-2s", 1, 2).routes[0]] == [0, 1]


def test_data_turn_round_at_the_switch() -> None:
    [route] = routes("dgx-h100", 8, 1).routes[0]
    assert names(route.fetched) == ["GPU0->sw0.gpu", "sw0.gpu->sw0", "sw0->NIC0"]
    assert names(route.placed) == ["NIC0->sw0", "sw0->sw0.gpu", "sw0.gpu->GPU0"]
    assert not route.is_staged
    assert route.rate_bps == PcieLink(5, 16).rate_bps(256)


def test_data_by_way_of_host_memory_cross_it_twice() -> None:
    [route] = routes("dgx-h100", 8, 1, gpudirect="never").routes[4]
    assert names(route.fetched) == [
        *("GPU4->sw4.gpu", "sw4.gpu->sw4", "sw4->numa1"),
        *["memory of numa1"] * 2,
        *("numa1->sw4", "sw4->NIC6"),
    ]
    assert route.is_staged
    assert route.copy_rate_bps == PcieLink(5, 16).rate_bps(256)
    slow = replace(HOST_LAYOUTS["dgx-h100"], numa=(NumaNode(0, "", 10**11), NumaNode(1, "", 10**11)))
    [route] = HostRoutes(slow, RouteSettings(gpudirect="never"), 8, 1).routes[4]
    assert (route.rate_bps, route.slowest and route.slowest.name) == (5 * 10**10, "memory of numa1")


def test_data_between_sockets_cross_their_link() -> None:
    far = HostLayout((NumaNode(0), NumaNode(1)), 10**11, (), (Accelerator("numa0"),), (HostNic("numa1"),))
    [[direct]] = HostRoutes(far, RouteSettings(gpudirect="SYS"), 1, 1).routes
    assert names(direct.fetched) == ["GPU0->numa0", "socket0->socket1", "numa1->NIC0"]
    assert names(direct.placed) == ["NIC0->numa1", "socket1->socket0", "numa0->GPU0"]
    assert (direct.distance, direct.rate_bps) == (Distance.SYS, 10**11)
    [[staged]] = HostRoutes(far, RouteSettings(), 1, 1).routes
    assert staged.is_staged


@pytest.mark.parametrize(
    ("at", "direct"),
    [
        ("sw", {"PIX", "PXB", "PHB", "SYS"}),
        ("sw.b", {"PXB", "PHB", "SYS"}),
        ("numa0/a", {"PHB", "SYS"}),
        ("numa0", {"PHB", "SYS"}),
        ("numa1", {"SYS"}),
    ],
)
def test_gpudirect_up_to_a_distance(at: str, direct: set[str]) -> None:
    switches = (PciSwitch("sw", "numa0/a"), PciSwitch("sw.b", "sw"))
    layout = HostLayout(TWO_NODES, None, switches, (Accelerator("sw"),), (HostNic(at),))
    for level in ("never", "PIX", "PXB", "PHB", "SYS"):
        [[route]] = HostRoutes(layout, RouteSettings(gpudirect=level), 1, 1).routes
        assert route.is_staged == (level not in direct)


def test_accelerators_with_nvlink_c2c_need_no_switch() -> None:
    assert not any(route.is_staged for of_rank in routes("gb200-tray", 4, 1).routes for route in of_rank)
    assert routes("gb200-tray", 4, 1, gpudirect="never").is_staged


def test_plain_values_name_what_the_text_does() -> None:
    found = as_dict(routes("dgx-a100", 8, 1))
    assert found["routes"][0][0]["links"][0] == "GPU0->sw0.gpu-a"
    assert found["numa"]["GPU7"] == 5
    assert "NIC4: no rank" in described(routes("dgx-a100", 8, 1))
    assert "rank 6, NIC 0: NIC8, PXB, direct, at most 230.456 Gb/s" in described(routes("dgx-a100", 8, 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nics": ()}, r"nics: 0 of them \(valid: 1 to 64\)"),
        ({"nics": (HostNic("sw9"),)}, r"nics\[0\].at: nothing is called 'sw9' \(valid: numa0, numa1, sw0\)"),
        ({"nics": (HostNic("numa2"),)}, r"nics\[0\].at: nothing is called 'numa2'"),
        ({"switches": (PciSwitch("sw0", "sw0"),)}, r"switches\[0\].at: 'sw0' is below itself"),
        ({"switches": (PciSwitch("sw0", "numa0"),) * 2}, r"switches\[1\].name: 'sw0' is used twice"),
        ({"switches": (PciSwitch("numa0", "numa1"),)}, r"switches\[0\].name: 'numa0' means a NUMA node"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    layout = HostLayout(TWO_NODES, None, (PciSwitch("sw0", "numa0"),), (), (HostNic("numa0"),))
    with pytest.raises(TopologyError, match=message):
        replace(layout, **changes)


FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "ranks_per_host": 2}


def scenario(host: Any, **options: Any) -> Any:
    given = options.pop("fabric", {})
    fabric = given if "kind" in given else {**FABRIC, **given}
    return parse_scenario({"clock": "virtual", "fabric": fabric, "host": host, **options})


OWN = {
    "numa": [{"cpus": "0-31", "memory": "400Gb/s"}],
    "switches": [{"name": "sw", "at": "numa0", "pcie": "4x8"}],
    "accelerators": [{"at": "sw"}, {"at": "sw"}],
    "nics": [{"at": "sw", "ports": 2}],
}


def test_a_layout_of_ones_own() -> None:
    found = scenario(OWN)
    spec = run_spec(found)
    ways = host_routes(spec.fabric, spec.options)
    assert ways is not None
    assert names(ways.routes[1][0].fetched) == ["GPU1->sw", "sw->NIC0"]
    assert ways.layout.numa[0].memory_bps == 400 * 10**9
    assert "host" in spec.options.as_dict()
    assert "host" not in run_spec(parse_scenario({"clock": "virtual"})).options.as_dict()


@pytest.mark.parametrize(
    ("host", "options", "message"),
    [
        ({"layout": "dgx-h101"}, {}, r"host.*no layout of a host 'dgx-h101'"),
        ({}, {}, r"host.layout: is missing \(valid: dgx-a100"),
        ({"layout": "dgx-h100", "nvlinks": 2}, {}, r"host.nvlinks: excludes layout dgx-h100"),
        ({"layout": "dgx-h100"}, {}, r"host.accelerators: 8 accelerators for 2 ranks.*fabric.ranks_per_host: 8"),
        ({**OWN, "nics": [{"at": "sw"}]}, {}, r"host.nics: 1 devices of NICs cannot be shared out evenly"),
        ({**OWN, "nics": [{"at": "sw", "pcie": "7x16"}] * 2}, {}, r"host.nics\[0\].pcie: '7x16' is not a PCIe"),
        ({**OWN, "nics": [{"at": "swi"}] * 2}, {}, r"host.nics\[0\].at: nothing is called 'swi' \(valid: numa0, sw\)"),
        ({**OWN, "nics": [{"at": "sw"}] * 4}, {"fabric": {"planes": 3}}, r"2 devices of NICs for 3 NICs of a rank"),
        (OWN, {"nic": {"pcie_rate": "100Gb/s"}}, r"nic.pcie_rate: does not go with host"),
        (OWN, {"clock": "real"}, r"host: does not go with clock: real"),
        (
            OWN,
            {"traffic": [{"storage": [3], "host_copy": {"bandwidth": "1Gb/s"}, "access": {"blocks": 1}}]},
            r"traffic\[0\].host_copy: `host` has the way of all transfers",
        ),
        (
            OWN,
            {"fabric": {"kind": "scale_up", "accelerators": 4}},
            r"host: does not go with fabric.kind: scale_up",
        ),
    ],
)  # fmt: skip
def test_scenarios_that_do_not_fit_are_refused(host: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        run_spec(scenario(host, **options))
