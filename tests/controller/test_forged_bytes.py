"""Whatever bytes a host outside a job sends, no slot of any switch takes them: mutated forgeries on native switches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from emulated_fabric import EmulatedFabric, emulated
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, raw

from weft.compiler.cli import compile_command
from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import FabricController
from weft.controller.grpc_targets import embedded_targets
from weft.controller.memberships import JobMembership
from weft.controller.pipeline import Pipeline
from weft.paths import FABRIC_P4
from weft.topologies import leaf_spine
from weft.topologies.addressing import IpVersion, result_group_address
from weft.traffic.aggregation_format import Kind
from weft.traffic.layers import IntShim, aggregation_frame

FABRIC = leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
MEMBERS, OUTSIDER = ["h0", "h1", "h2"], "h3"  # the outsider shares a leaf with a member
JOBS: dict[IpVersion, int] = {4: 1, 6: 2}
State = dict[str, list[int]]


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[EmulatedFabric, dict[IpVersion, JobMembership]]]:
    folder = tmp_path_factory.mktemp("compiled")
    json_path, p4info_path = folder / "fabric.json", folder / "fabric.txtpb"
    arguments = [str(FABRIC_P4), "-o", str(json_path), "--p4info", str(p4info_path)]
    assert CliRunner().invoke(compile_command, arguments).exit_code == 0
    pipeline = Pipeline.load(p4info_path, json_path)
    with (
        emulated(FABRIC, native=True) as fabric,
        BlockingFabricController(
            FabricController(FABRIC, pipeline, embedded_targets(FABRIC, fabric.address))
        ) as control,
    ):
        jobs = {version: control.add_job(job, MEMBERS, 4, ip_version=version) for version, job in JOBS.items()}
        yield fabric, {version: job["h2"][0] for version, job in jobs.items()}


def slots(fabric: EmulatedFabric) -> State:
    register = "FabricIngress.aggregation.slot_bitmap"
    return {name: list(switch.register_read_all(register)) for name, switch in fabric.switches.items()}


def forged(
    victim: JobMembership,
    to: str,
    kind: Kind,
    rank: int,
    round_number: int,
    lane_count: int,
    destination: int,
) -> Packet:
    """Return a packet with all that a member knows, from the outsider to any node's address."""
    version: IpVersion = 4 if victim.group_address.version == 4 else 6
    nic = FABRIC.host(OUTSIDER).nic(0)
    if to == "group":
        address = str(result_group_address(victim.job_id, version))
    elif to.startswith("h"):
        target = FABRIC.host(to).nic(0)
        address = str((target.ipv4 if version == 4 else target.ipv6).ip)
    else:
        address = str(FABRIC.switch(to).address_of(version))
    return aggregation_frame(
        source_mac=nic.mac,
        destination_mac=nic.gateway_mac,
        source_ip=str((nic.ipv4 if version == 4 else nic.ipv6).ip),
        destination_ip=address,
        qkey=victim.q_key,
        kind=kind,
        job_id=victim.job_id,
        epoch=victim.epoch,
        rank=rank,
        round_number=round_number,
        lanes=[7] * lane_count,
        destination=destination,
        hop_limit=255,
    )


nodes = st.sampled_from([switch.name for switch in FABRIC.switches] + ["h0", "h2", "group"])
changes = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 255)), max_size=4)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([4, 6]), nodes, st.sampled_from(list(Kind)), st.integers(0, 2), st.integers(0, 3),
    changes, st.booleans(), st.booleans(), st.integers(0, 40), st.sampled_from([64, 0]),
    st.sampled_from([0xFFFF, 0, 1]),
)  # fmt: skip
@example(4, "p0s0", Kind.CONTRIBUTION, 1, 0, [], False, False, 0, 64, 0xFFFF)
@example(4, "p0s1", Kind.CONTRIBUTION, 1, 0, [], False, False, 0, 0, 0)
@example(6, "p0s0", Kind.CONTRIBUTION, 1, 0, [], True, False, 0, 64, 0xFFFF)
@example(6, "p0s1", Kind.CONTRIBUTION, 1, 0, [], True, False, 0, 0, 1)
def test_no_bytes_of_an_outsider_touch_a_slot_or_reach_a_member_as_a_result(
    running: tuple[EmulatedFabric, dict[IpVersion, JobMembership]],
    version: IpVersion,
    to: str,
    kind: Kind,
    rank: int,
    round_number: int,
    mutations: list[tuple[int, int]],
    with_shim: bool,
    with_checksum: bool,
    cut: int,
    lane_count: int,
    destination: int,
) -> None:
    fabric, memberships = running
    frame = forged(memberships[version], to, kind, rank, round_number, lane_count, destination)
    if with_shim:
        frame = Ether(src=frame.src, dst=frame.dst) / IntShim() / frame.payload
    data = bytearray(raw(frame))
    for place, value in mutations:
        data[place % len(data)] = value
    if with_checksum and mutations and version == 4 and not with_shim:
        # As an attacker would: with a corrected header, including fragments and options.
        header = IP(bytes(data[14:34]))
        data[24:26] = b"\0\0"
        del header.chksum
        data[24:26] = raw(header)[10:12]
    before = slots(fabric)
    delivered = fabric.send(OUTSIDER, 0, bytes(data[: len(data) - cut] if cut else data))
    assert slots(fabric) == before
    assert not [each for each in delivered if int(each.frame[0]) & 1]  # nothing to a group
