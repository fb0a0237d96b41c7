"""What a host's RDMA device is: facts of its NICs, in the form in which sysfs has them."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from weft.topologies import leaf_spine
from weft.verbs.counters import HARDWARE_COUNTERS, PORT_COUNTERS, CounterFiles
from weft.verbs.device import device_of, gid, guid, link_speed
from weft.verbs.sysfs import write_sysfs

GIGABIT = 10**9
FABRIC = leaf_spine(planes=2, leaves=1, spines=1, hosts_per_leaf=2)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_sysfs(tmp_path / "h1", device_of(FABRIC.hosts[1]))
    return tmp_path / "h1" / "class"


def content(tree: Path, *names: str) -> dict[str, str]:
    return {name: (tree / name).read_text(encoding="ascii") for name in names}


def test_a_guid_is_the_macs_eui_64() -> None:
    # RFC 4291, appendix A: 34-56-78-9A-BC-DE becomes 36-56-78-FF-FE-9A-BC-DE.
    assert guid("34:56:78:9a:bc:de") == "3656:78ff:fe9a:bcde"


def test_gids_are_addresses() -> None:
    (_, nic) = FABRIC.hosts[1].nics
    assert gid(nic.ipv4.ip) == "0000:0000:0000:0000:0000:ffff:0a01:0002"
    assert gid(nic.ipv6.ip) == "fd00:0001:0000:0000:0000:0000:0000:0002"


@pytest.mark.parametrize(
    ("rate_bps", "lanes", "name"),
    [
        (10**6, 1, "SDR"),
        (10 * GIGABIT, 1, "FDR10"),
        (25 * GIGABIT, 1, "EDR"),
        (100 * GIGABIT, 4, "EDR"),
        (100 * GIGABIT + 1, 4, "HDR"),
        (400 * GIGABIT, 4, "NDR"),
        (800 * GIGABIT, 8, "NDR"),
        (10**14, 8, "NDR"),
    ],
)
def test_a_rate_has_the_name_of_a_speed_that_is_no_slower(rate_bps: int, lanes: int, name: str) -> None:
    speed = link_speed(rate_bps)
    assert (speed.lanes, speed.name) == (lanes, name)


def test_sysfs_has_what_libraries_read(tree: Path) -> None:
    null = os.stat("/dev/null").st_rdev
    numbers = f"{os.major(null)}:{os.minor(null)}\n"
    verbs, device = "infiniband_verbs", "infiniband/weft0"
    assert content(tree, f"{verbs}/abi_version", f"{verbs}/uverbs0/ibdev", f"{verbs}/uverbs0/dev") == {
        f"{verbs}/abi_version": "6\n",
        f"{verbs}/uverbs0/ibdev": "weft0\n",
        f"{verbs}/uverbs0/dev": numbers,
    }
    assert (tree / "misc/rdma_cm/dev").read_text() == numbers
    assert (tree / device / "node_type").read_text() == "1: CA\n"
    assert (tree / device / "node_guid").read_text().strip() == guid(FABRIC.hosts[1].nics[0].mac)


def test_each_plane_has_a_port_with_its_own_gids(tree: Path) -> None:
    ports = tree / "infiniband/weft0/ports"
    assert sorted(each.name for each in ports.iterdir()) == ["1", "2"]
    for number, nic in enumerate(FABRIC.hosts[1].nics, 1):
        port = ports / str(number)
        assert [(port / "gids" / index).read_text().strip() for index in "01"] == [gid(nic.ipv4.ip), gid(nic.ipv6.ip)]
        assert (port / "gid_attrs/types/0").read_text() == "RoCE v2\n"
        assert (port / "gid_attrs/ndevs/1").read_text().strip() == nic.interface
        assert (port / "state").read_text() == "4: ACTIVE\n"
        assert not (port / "hw_counters").exists()


def test_a_device_of_one_port_has_its_hardware_counters_there_too(tmp_path: Path) -> None:
    host = leaf_spine(planes=1, leaves=1, spines=1, hosts_per_leaf=1).hosts[0]
    nic = replace(host.nics[0], link=replace(host.nics[0].link, rate_bps=400 * GIGABIT))
    device = write_sysfs(tmp_path / "h0", device_of(replace(host, nics=(nic,))))
    port = device / "ports" / "1"
    assert (port / "rate").read_text() == "400 Gb/sec (4X NDR)\n"
    assert {each.name for each in (port / "gids").iterdir()} == {"0", "1"}
    assert (port / "gid_attrs/ndevs/0").read_text() == f"{nic.interface}\n"
    assert set(HARDWARE_COUNTERS) < {each.name for each in (port / "hw_counters").iterdir()}
    assert (port / "cm_rx_duplicates/drep").read_text() == "0\n"


def test_everybody_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_sysfs(tmp_path / "h0", device_of(FABRIC.hosts[0]))
    finally:
        os.umask(before)
    for path in (tmp_path / "h0" / "class").rglob("*"):
        # The host's process, which need not be able to override rights, writes the counters.
        expected = (0o755,) if path.is_dir() else (0o444, 0o644) if path.read_text() == "0\n" else (0o444,)
        assert stat.S_IMODE(path.stat().st_mode) in expected, path


@pytest.mark.skipif(os.geteuid() != 0, reason="the files of a device are read-only for all but root")
def test_counters_are_written_in_place_and_only_grow(tree: Path) -> None:
    device = tree / "infiniband/weft0"
    sent = device / "ports/2/counters/port_xmit_packets"
    with CounterFiles(device, 2) as files, sent.open() as opened:
        assert {(device / f"ports/1/counters/{name}").read_text() for name in PORT_COUNTERS} == {"0\n"}
        files.write({2: {"port_xmit_packets": 12345}}, {"cnps_sent": 7})
        assert opened.read() == "12345\n"
        files.write({2: {"port_xmit_packets": 9}}, {"cnps_sent": 8, "ud_bad_q_key": 3, "cm_tx_msgs/req": 2})
    assert sent.read_text() == "12345\n"
    assert (device / "hw_counters/np_cnp_sent").read_text() == "8\n"
    assert (device / "hw_counters/rp_cnp_handled").read_text() == "0\n"
    assert (device / "hw_counters/ud_bad_q_key").read_text() == "3\n"
    assert (device / "cm_tx_msgs/req").read_text() == "2\n"


def test_files_of_another_device_are_missed(tree: Path) -> None:
    with pytest.raises(FileNotFoundError):
        CounterFiles(tree / "infiniband/weft0", 3)
