"""Files that describe a host: NCCL's topology gives a fabric its ranks, NICs and scale-up links.

WEFT_INFRAGRAPH_CLONE names a local clone of Keysight/infragraph, which has the topology of a DGX A100.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.errors import BadInputError
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import load_scenario, parse_scenario
from weft.scenario.topology import build_topology
from weft.topologies.host_files import HostShape, read_host

EXAMPLE = ROOT / "examples" / "topology_files" / "nccl.xml"
TEXT = EXAMPLE.read_text(encoding="utf-8")
CLONE = Path(os.environ.get("WEFT_INFRAGRAPH_CLONE", ""))


def section(path: Path, **keys: object) -> dict[str, object]:
    return {"fabric": {"leaves": 4, "spines": 2, "hosts_per_leaf": 1, "host_file": str(path), **keys}}


def test_the_example_gives_ranks_nics_and_scale_up_links() -> None:
    chosen = load_scenario(EXAMPLE.with_name("nccl.yaml")).fabric
    fabric = build_topology(chosen)
    assert chosen.notes == ("NICs without a GPU near them, left out: mlx5_4",)
    assert (chosen.ranks_per_host, chosen.planes, len(fabric.hosts), fabric.planes) == (4, 1, 8, 1)
    assert {nic.link.rate_bps for host in fabric.hosts for nic in host.nics} == {400 * 10**9}
    assert fabric.scale_up is not None
    assert (fabric.scale_up.ranks_per_host, fabric.scale_up.rate_bps) == (4, 3600 * 10**9)
    # Rank i of each host is on the leaf of rail i.
    assert [host.nics[0].switch for host in fabric.hosts] == ["p0l0"] * 2 + ["p0l1"] * 2 + ["p0l2"] * 2 + ["p0l3"] * 2


def test_the_example_runs() -> None:
    result = run_scenario(load_scenario(EXAMPLE.with_name("nccl.yaml")))
    assert result.ok


def test_keys_of_the_scenario_go_before_the_file() -> None:
    keys = {"host_rate": "100Gb/s", "ranks_per_host": 2, "planes": 2, "scale_up": {"rate": "900Gb/s", "latency": "1us"}}
    chosen = parse_scenario(section(EXAMPLE, **keys)).fabric
    assert (chosen.host_rate, chosen.ranks_per_host, chosen.planes) == (10**11, 2, 2)
    assert chosen.scale_up.rate == 900 * 10**9
    latency = parse_scenario(section(EXAMPLE, scale_up={"latency": "1us"})).fabric.scale_up
    assert (latency.rate, latency.latency) == (3600 * 10**9, 10**6)


def test_two_nics_of_a_gpu_are_two_planes(tmp_path: Path) -> None:
    net = '<net name="mlx5_{}" dev="9" speed="400000" port="2" guid="0x7" maxconn="131072" gdr="1" /></nic>'
    (tmp_path / "two.xml").write_text(TEXT.replace("</nic>", net))
    shape = read_host(tmp_path / "two.xml")
    assert (shape.ranks, shape.nics_per_rank) == (4, 2)


def test_nics_at_a_processor_are_those_of_its_gpus(tmp_path: Path) -> None:
    (tmp_path / "flat.xml").write_text(
        '<system version="1"><cpu numaid="0">'
        '<pci busid="1"><gpu dev="0" sm="70"><nvlink target="2" count="6" /></gpu></pci>'
        '<pci busid="2"><gpu dev="1" sm="70"><nvlink target="1" count="6" /></gpu></pci>'
        '<pci busid="3"><nic><net name="a" speed="100000" /><net name="b" speed="100000" /></nic></pci>'
        "</cpu></system>"
    )
    assert read_host(tmp_path / "flat.xml") == HostShape(2, 1, 10**11, 1200 * 10**9)


REFUSED = {
    "not XML": ("</system>", "", r"is not XML"),
    "other XML": ("system", "topology", r"line 1: <topology> is no topology \(valid: <system>\)"),
    "a document type": ("<system", '<!DOCTYPE s [<!ENTITY a "b">]><system', "DOCTYPE 's' is refused"),
    "another speed": ('"1" speed="400000"', '"1" speed="200000"', r"<net> has speed of 200Gb/s"),
    "a speed of no number": ('dev="1" speed="400000"', 'dev="1" speed="fast"', r"<net>: speed 'fast'"),
    "an unknown GPU": ('sm="90"', 'sm="61"', r"the rate of NVLinks of sm 61 is not known \(valid: 60, 70"),
    "fewer NVLinks": ('target="0000:f1:00.0" count="9"', 'target="0000:f1:00.0" count="8"', None),
    "no GPU": ("gpu", "gqu", r"line 1: 0 GPUs \(valid: 1 to 64\)"),
    "no NVLink": ("<nvlink", "<link", r"its GPUs have no NVLinks \(valid: scale_up: {rate: …} in the scenario\)"),
    "NICs too few": ("<net ", "<not ", r"0 NICs cannot be shared out evenly among 4 GPUs"),
    "two hosts": ('numaid="1"', 'numaid="1" host_hash="0x7"', r"line 1: describes 2 hosts \(valid: one\)"),
    "depth": ("<system version", "<a>" * 100 + "<system version", "too many elements, or too deep"),
    "text": ("<system", "system", r"describes no host \(valid: NCCL's topology"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_describe_no_host_are_refused(tmp_path: Path, case: str) -> None:
    old, new, message = REFUSED[case]
    assert old in TEXT
    path = tmp_path / "broken.xml"
    path.write_text(TEXT.replace(old, new, -1 if message else 1))
    with pytest.raises(BadInputError, match=message or "<gpu> has NVLinks of 3600Gb/s, line 5 of 3400Gb/s") as raised:
        parse_scenario(section(path))
    assert f"fabric.host_file: {path}" in str(raised.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"fabric.host_file: .*none.xml cannot be read: No such file"):
        parse_scenario(section(tmp_path / "none.xml"))
    with pytest.raises(BadInputError, match=r"/dev/zero: this is a device, not a regular file"):
        parse_scenario(section(Path("/dev/zero")))


@pytest.mark.skipif(
    not os.environ.get("WEFT_INFRAGRAPH_CLONE"), reason="WEFT_INFRAGRAPH_CLONE names no clone of Keysight/infragraph"
)
def test_a_dgx_a100_is_read() -> None:
    resources = CLONE / "src" / "tests" / "test_translators" / "resources"
    shape = read_host(resources / "dgx_a100_nccl_topo.xml")
    assert shape == HostShape(
        8,
        1,
        200 * 10**9,
        2400 * 10**9,
        ("NICs without a GPU near them, left out: mlx5_4, mlx5_5, mlx5_10, mlx5_11",),
    )
