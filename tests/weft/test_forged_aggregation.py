"""Hosts that know everything but have no place in a job forge its packets: docs/spec/aggregation-threat-model.md."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Packet, raw

from weft import Fabric
from weft.clocks.virtual.lab import VirtualLab
from weft.controller.memberships import JobMembership
from weft.engine import Engine, Node
from weft.run.aggregation_job import host_membership
from weft.topologies import FabricSpec, HostSpec, fat_tree, leaf_spine
from weft.topologies.addressing import IpVersion, result_group_address, result_group_mac
from weft.traffic.aggregation_format import LANE_COUNT, Kind, Operation
from weft.traffic.data_types import DataType
from weft.traffic.layers import IntShim, aggregation_frame
from weft.traffic.layers.frames import SWITCH_HOP_LIMIT
from weft.traffic.schedules import CollectiveSpec

JOB, OTHER_JOB, SLOTS, ROUNDS = 1, 2, 4, 4
ELEMENTS = 64 * SLOTS * ROUNDS
POISON = 10**6
REPETITIONS = 3
PLACES = [(slot, number) for number in range(ROUNDS) for slot in range(SLOTS)]
EARLY_PS, WHILE_PS = 10**6, 30 * 10**6
# Job 1 has the first ranks, below two leaves; of the forgers, a job of their own, one sits beside them, one apart.
TWO_TIERS = leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=2)
THREE_TIERS = fat_tree(pods=2, leaves_per_pod=2, spines_per_pod=2, hosts_per_leaf=2, cores_per_spine=1)
FABRICS = {"two tiers": (TWO_TIERS, ["h3", "h4"]), "three tiers": (THREE_TIERS, ["h3", "h6"])}


@dataclass(frozen=True)
class Secrets:
    """What the forger knows: everything about the job that it attacks, and its own job's key."""

    victim: JobMembership
    own_key: int
    ip_version: IpVersion


def forged(forger: HostSpec, known: Secrets, address: str, **fields: Any) -> Packet:
    """Return the best forged contribution to an address; `fields` override header fields."""
    nic = forger.nic(0)
    whole = {
        "source_mac": nic.mac,
        "destination_mac": nic.gateway_mac,
        "source_ip": str((nic.ipv4 if known.ip_version == 4 else nic.ipv6).ip),
        "destination_ip": address,
        "qkey": known.victim.q_key,
        "job_id": JOB,
        "epoch": known.victim.epoch,
        "lanes": [POISON] * 64,
    }
    return aggregation_frame(**whole | fields)


def aimed_forgeries(fabric: FabricSpec, forger: HostSpec, known: Secrets) -> Iterator[Packet]:
    """Yield partial sums in the name of every child of every switch, for the first two rounds."""
    for switch, rank, (slot, number) in itertools.product(fabric.switches, (0, 1), PLACES[: 2 * SLOTS]):
        address = str(switch.address_of(known.ip_version))
        yield forged(forger, known, address, rank=rank, slot=slot, round_number=number)


def any_forgeries(fabric: FabricSpec, forger: HostSpec, known: Secrets, draw: random.Random) -> Iterator[Packet]:
    """Yield contributions and results to every switch, host and group, with every MAC that may lead there."""
    version = known.ip_version
    switches = {str(switch.address_of(version)): switch.mac for switch in fabric.switches}
    nics = [host.nic(0) for host in fabric.hosts]
    hosts = {str((nic.ipv4 if version == 4 else nic.ipv6).ip): nic.mac for nic in nics}
    groups = {str(result_group_address(job, version)): result_group_mac(job, version) for job in (JOB, OTHER_JOB)}
    for (address, mac), kind in itertools.product((switches | hosts | groups).items(), Kind):
        for slot, number in draw.sample(PLACES, 2):
            frame = forged(
                forger,
                known,
                address,
                kind=kind,
                destination_mac=draw.choice([forger.nic(0).gateway_mac, mac]),
                source_ip=draw.choice([*hosts, *switches]),
                qkey=draw.choice([known.victim.q_key, known.own_key]),
                slot=slot,
                round_number=number,
                rank=draw.choice([0, 1, 2]),
                hop_limit=draw.choice([64, 65, SWITCH_HOP_LIMIT]),
            )
            shim = draw.random() < 0.3
            yield Ether(src=frame.src, dst=frame.dst) / IntShim() / frame.payload if shim else frame


def reduce_among(fabric: Fabric, ranks: int, directory: Path, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Sum random vectors of the first ranks in the network; return each rank's result and the expected sum."""
    inputs = [np.random.default_rng((seed, rank)).integers(-1000, 1000, ELEMENTS, np.int32) for rank in range(ranks)]
    files = [directory / f"{seed}-{rank}" for rank in range(ranks)]
    for file, data in zip(files, inputs, strict=True):
        data.tofile(file)
    rates = tuple(nic.link.rate_bps for nic in fabric.topology.hosts[0].nics)
    spec = CollectiveSpec(ranks, ELEMENTS, DataType.INT32, Operation.SUM, rates)
    fabric.hosts.run(fabric.hosts.prepare_collective(spec, "in-network", files, aggregation_jobs=[(JOB,)] * ranks))
    return [np.fromfile(file, np.int32) for file in files], np.sum(inputs, axis=0, dtype=np.int32)


def join(fabric: Fabric, job: int, hosts: list[str], version: IpVersion) -> dict[str, JobMembership]:
    memberships = fabric.lab.controller.add_job(job, hosts, SLOTS, ip_version=version)
    fabric.hosts.join(
        {
            fabric.topology.host(name).index: [host_membership(each, LANE_COUNT) for each in memberships[name]]
            for name in hosts
        }
    )
    return {name: each[0] for name, each in memberships.items()}


def entrance(fabric: Fabric, host: HostSpec) -> tuple[Engine, Node, int]:
    """Return where a host's frames enter: its leaf's engine, the leaf and the port."""
    nic = host.nic(0)
    leaf = fabric.topology.switch(nic.switch)
    lab = fabric.lab
    assert isinstance(lab, VirtualLab)
    return lab.engines[leaf.name], lab.switches.switches[leaf.device_id].switch.native, nic.switch_port


def drops(fabric: Fabric) -> Counter[tuple[str, str]]:
    """Return the drops that all switches' programs counted, by (switch, reason)."""
    counters = fabric.lab.controller.read_counters()
    return Counter(
        {(switch, reason): count.packets for switch, each in counters.items() for reason, count in each.drops.items()}
    )


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", FABRICS)
def test_no_host_outside_a_job_changes_its_sums(name: str, version: IpVersion, tmp_path: Path) -> None:
    topology, forgers = FABRICS[name]
    members = [host.name for host in topology.hosts[:3]]
    with Fabric(topology, clock="virtual", ip_version=version) as fabric:
        own = join(fabric, OTHER_JOB, forgers, version)
        for seed in range(REPETITIONS):
            victim = join(fabric, JOB, members, version)[members[0]]
            known = Secrets(victim, own[forgers[0]].q_key, version)
            draw = random.Random(seed)
            sent = Counter[str]()
            start_ps = fabric.lab.partitions.now_ps
            for forger in map(topology.host, forgers):
                engine, switch, port = entrance(fabric, forger)
                early = [(frame, EARLY_PS) for frame in aimed_forgeries(topology, forger, known)]
                later = [(frame, WHILE_PS) for frame in any_forgeries(topology, forger, known, draw)]
                for frame, within_ps in early + later:
                    engine.inject(switch, port, raw(frame), start_ps + draw.randrange(within_ps))
                    sent[forger.nic(0).switch] += 1
            before = drops(fabric)
            results, wanted = reduce_among(fabric, len(members), tmp_path, seed)
            assert fabric.lab.partitions.now_ps > start_ps  # and the forgeries came meanwhile
            for result in results:
                np.testing.assert_array_equal(result, wanted)
            fabric.permutation(100_000)  # outlasts the last forgery
            counted = drops(fabric) - before
            # None gets beyond the leaf where it entered, and each is counted there.
            assert {leaf: sum(n for (at, _), n in counted.items() if at == leaf) for leaf in sent} == sent
            assert {at for at, _ in counted} == set(sent)
            assert {reason for _, reason in counted} <= REASONS
            assert counted[topology.host(forgers[0]).nic(0).switch, "aggregation_not_forwarded"] > 20
            fabric.lab.controller.remove_job(JOB)


REASONS = {
    "aggregation_not_forwarded", "aggregation_foreign_port", "aggregation_foreign_job", "aggregation_bad_header",
    "not_for_this_switch",
}  # fmt: skip
