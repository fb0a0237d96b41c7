"""Aggregation jobs: trees, ranks, quotas, epochs; contributions walk up the tables and results down."""

from __future__ import annotations

from collections import Counter
from typing import Any

import finsy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.entities import Entity
from weft.controller.errors import JobError, SettingError
from weft.controller.failures import NO_FAILURES
from weft.controller.features.aggregation import aggregation_entities
from weft.controller.features.multicast import multicast_group
from weft.controller.job import Job
from weft.controller.jobs import MAX_EPOCH, JobTable
from weft.controller.memberships import JobMembership
from weft.controller.queue_keys import repeatable_queue_keys
from weft.controller.slots import SlotPool
from weft.topologies import FabricSpec, SwitchSpec, TopologyError, leaf_spine
from weft.topologies.addressing import IpVersion

FABRIC = leaf_spine(planes=2, leaves=4, spines=2, hosts_per_leaf=3)
ALL = [host.name for host in FABRIC.hosts]


def table(capacity: int = 4096, fabric: FabricSpec = FABRIC) -> JobTable:
    return JobTable(fabric, capacity)


@given(st.lists(st.sampled_from(ALL), min_size=1, unique=True), st.integers(1, 512), st.sampled_from([4, 6]))
@settings(deadline=None, max_examples=50)
def test_every_contribution_reaches_the_root_once_and_results_every_worker(
    hosts: list[str], slots: int, ip_version: IpVersion
) -> None:
    jobs = table()
    jobs.add(9, [ALL[0]], slots)
    jobs.add(10, hosts, slots, ip_version=ip_version)
    entities = aggregation_entities(FABRIC, [jobs.job(10)])
    for plane in range(FABRIC.planes):
        memberships = {host: jobs.memberships(10)[host][plane] for host in hosts}
        walk_up(entities, memberships, plane)
        assert walk_down(entities, jobs.job(10), plane) == Counter(hosts)


def walk_up(entities: dict[str, list[Entity]], memberships: dict[str, JobMembership], plane: int) -> None:
    """Deliver one contribution per worker; every node completes exactly, in its own rank and bit."""
    arriving: list[tuple[SwitchSpec, int, int, JobMembership | None]] = [
        (FABRIC.switch_of(host, plane), FABRIC.host(host).nic(plane).switch_port, membership.rank, membership)
        for host, membership in memberships.items()
    ]
    first = next(iter(memberships.values()))
    seen: dict[str, int] = {}
    roots = 0
    while arriving:
        switch, port, rank, membership = arriving.pop()
        job = find(entities[switch.name], "aggregation_job", job_id=10)
        child = find(entities[switch.name], "aggregation_member", job_id=10, port=port)
        assert child["child_rank"] == rank
        assert job["queue_key"] == first.q_key
        assert job["epoch"] == first.epoch
        assert job["slot_count"] == first.slot_count
        assert seen.get(switch.name, 0) & child["child_bit"] == 0
        seen[switch.name] = seen.get(switch.name, 0) | child["child_bit"]
        if membership is not None:
            assert (membership.aggregation_address, membership.aggregation_mac) == (
                switch.address_of(job["ip_version"]),
                switch.mac,
            )
        if seen[switch.name] == job["full_bitmap"]:
            if job["is_root"]:
                roots += 1
                continue
            port_up = switch.port(job["parent_port"])
            parent = FABRIC.switch(port_up.peer.node)
            assert (parent.mac, int(parent.address_of(job["ip_version"]))) == (
                job["parent_mac"],
                job["parent_address"],
            )
            assert find(entities[switch.name], "aggregation_member", "parent", job_id=10, port=port_up.number) == {}
            arriving.append((parent, port_up.peer.port, job["rank_at_parent"], None))
    assert roots == 1


def walk_down(entities: dict[str, list[Entity]], job: Job, plane: int) -> Counter[str]:
    """Replicate a result from the root; count who gets it."""
    planned = next(each for each in job.trees if each.tree.plane == plane)
    pending, got = [planned.tree.root.switch], Counter[str]()
    while pending:
        name = pending.pop()
        group = next(e for e in entities[name] if isinstance(e, finsy.P4MulticastGroupEntry))
        assert group.multicast_group_id == find(entities[name], "aggregation_job", job_id=10)["multicast_group"]
        for replica in group.replicas:
            port = FABRIC.switch(name).port(replica)  # type: ignore[arg-type]
            if port.peer_is_host:
                got[port.peer.node] += 1
            else:
                pending.append(port.peer.node)
    return got


def find(entities: list[Entity], name: str, action: str | None = None, **match: int) -> dict[str, Any]:
    found = [
        entity
        for entity in entities
        if isinstance(entity, finsy.P4TableEntry) and entity.table_id == name and entity.match == match
    ]
    assert len(found) == 1
    assert isinstance(found[0].action, finsy.P4TableAction)
    assert action is None or found[0].action.name == action
    return found[0].action.args


def test_a_job_below_one_leaf_has_that_leaf_as_its_root() -> None:
    job = table().add(1, ["h0", "h2"], 8)
    assert [planned.tree.root.switch for planned in job.trees] == ["p0l0", "p1l0"]
    assert [len(planned.tree.nodes) for planned in job.trees] == [1, 1]


def test_jobs_spread_over_the_spines() -> None:
    jobs = table()
    roots = [jobs.add(number, ALL, 8).trees[0].tree.root.switch for number in (1, 2, 3, 4)]
    assert Counter(roots) == {"p0s0": 2, "p0s1": 2}


def test_quotas_do_not_overlap_and_come_back() -> None:
    jobs = table(capacity=100)
    jobs.add(1, ALL, 40)
    jobs.add(2, ALL, 40)
    ranges = jobs.pool("p0l0").ranges()
    assert set(ranges[1]).isdisjoint(ranges[2])
    with refused(
        JobError,
        valid="at most 20, the largest free range of 100; taken: 40 by job 1, 40 by job 2",
        problem="job 3 wants 30 aggregation",
    ):
        jobs.add(3, ALL, 30)
    assert jobs.pool("p0s1").free + jobs.pool("p0s0").free == 120
    jobs.remove(1)
    assert jobs.add(3, ALL, 30).trees[0].slot_base["p0l0"] == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), max_size=40))
def test_slot_pool_never_gives_a_slot_twice(steps: list[tuple[int, int]]) -> None:
    pool = SlotPool("s", 100)
    for job_id, count in steps:
        if job_id in pool.ranges():
            pool.release(job_id)
        else:
            try:
                base = pool.allocate(job_id, count)
            except JobError:
                assert max_gap(pool) < count
            else:
                assert pool.ranges()[job_id] == range(base, base + count)
        taken = [slot for slots in pool.ranges().values() for slot in slots]
        assert len(taken) == len(set(taken)) == 100 - pool.free
        assert all(0 <= slot < 100 for slot in taken)


def max_gap(pool: SlotPool) -> int:
    taken = {slot for slots in pool.ranges().values() for slot in slots}
    best = run = 0
    for slot in range(pool.capacity):
        run = 0 if slot in taken else run + 1
        best = max(best, run)
    return best


def test_epochs_are_never_zero_and_never_repeat_at_once() -> None:
    jobs = JobTable(FABRIC, 4096, first_epoch=MAX_EPOCH)
    epochs = []
    for _ in range(3):
        epochs.append(jobs.add(1, ["h0"], 1).epoch)
        jobs.remove(1)
    assert epochs == [MAX_EPOCH, 1, 2]


def keys_of(*tables: JobTable) -> list[int]:
    return [jobs.add(number, ["h0"], 1).q_key for jobs in tables for number in (1, 2)]


def test_queue_keys_are_random() -> None:
    keys = keys_of(*(table() for _ in range(20)))
    assert len(set(keys)) == 40  # by chance alone two of them are equal in one run of three million
    assert all(0 < key < 2**31 for key in keys)
    assert any(key % 2 for key in keys)
    assert any(key % 2 == 0 for key in keys)


def test_queue_keys_of_a_seed_repeat() -> None:
    first, again, other = (JobTable(FABRIC, 4096, repeatable_queue_keys(seed)) for seed in (1, 1, 2))
    keys = keys_of(first, again, other)
    assert keys[:2] == keys[2:4]
    assert len(set(keys)) == 4
    assert all(0 < key < 2**31 for key in keys)


@pytest.mark.parametrize(
    ("ip_version", "group", "mac", "leaf"),
    [
        (4, "239.87.18.52", "01:00:5e:57:12:34", "10.0.0.254"),
        (6, "ff15::ef57:1234", "33:33:ef:57:12:34", "fd00::fe"),
    ],
)
def test_members_learn_addresses_of_the_job_s_ip_version(
    ip_version: IpVersion, group: str, mac: str, leaf: str
) -> None:
    jobs = table()
    jobs.add(0x1234, ["h0", "h1"], 1, ip_version=ip_version)
    membership = jobs.memberships(0x1234)["h0"][0].to_dict()
    assert (membership["group_address"], membership["group_mac"]) == (group, mac)
    assert membership["aggregation_address"] == leaf


def test_an_unknown_ip_version_is_refused() -> None:
    with refused(JobError, valid="4, 6", problem="ip_version=5"):
        table().add(1, ["h0"], 1, ip_version=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [-1, 1])
def test_a_nic_that_hosts_do_not_have_is_refused(place: int) -> None:
    with refused(JobError, valid="0 to 0", problem=f"NICs at place {place}"):
        table().add(1, ["h0"], 1, place=place)


def test_rebuild_moves_the_root_and_reports_what_cannot_be_saved() -> None:
    jobs = table()
    jobs.add(1, ALL, 8, planes=[0])
    jobs.add(2, ["h0", "h1"], 8, planes=[0])
    failures = NO_FAILURES.with_link(FABRIC.link_between("p0l0", "p0s0"))
    rebuilt, lost = jobs.rebuild(failures)
    assert [job.job_id for job in rebuilt] == [1]
    assert rebuilt[0].trees[0].tree.root.switch == "p0s1"
    assert lost == {}
    failures = failures.with_link(FABRIC.link_between("p0l3", "p0s1"))
    rebuilt, lost = jobs.rebuild(failures)
    assert [job.job_id for job in rebuilt] == [1], "no spine reaches all leaves, but paths through leaves do"
    assert not rebuilt[0].trees[0].tree.is_hit_by(failures)
    assert lost == {}
    rebuilt, lost = jobs.rebuild(failures.with_link(FABRIC.link_between("p0l3", "p0s0")))
    assert rebuilt == []
    assert "no switch of plane 0 reaches all leaves of the job: p0l0, p0l1, p0l2, p0l3" in lost[1]
    assert [job.job_id for job in jobs.jobs] == [2]
    assert jobs.pool("p0s1").free == 4096


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, ALL, 1), {"valid": "1 to 65535", "problem": "job id 0 is out of range"}),
        ((1, [], 1), {"valid": "at least 1", "problem": "has no hosts"}),
        ((1, ["h0", "h0"], 1), {"problem": "names host h0 more than once"}),
        ((1, ["h0"], 0), {"valid": "1 or more", "problem": "slot_count=0"}),
        ((1, ["h0"], 1, [2]), {"valid": "different ones of 0 to 1", "problem": "planes [2]"}),
        ((1, ["h0"], 1, []), {"valid": "different ones of 0 to 1", "problem": "planes []"}),
    ],
)
def test_bad_jobs_are_refused(arguments: tuple[object, ...], message: dict[str, str]) -> None:
    with refused(JobError, **message):
        table().add(*arguments)  # type: ignore[arg-type]


def test_unknown_hosts_and_too_many_children_are_refused() -> None:
    with refused(TopologyError, valid="h0, h1, h2, h3, h4, h5, h6, h7, … h11", problem="unknown host 'h99'"):
        table().add(1, ["h99"], 1)
    crowded = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=33)
    with refused(JobError, valid="at most 32", problem="p0l0 would have 33 children in"):
        JobTable(crowded, 10).add(1, [host.name for host in crowded.hosts], 1)
    jobs = table()
    jobs.add(1, ["h0"], 1)
    with refused(JobError, valid="an id that no job has", problem="job 1 exists already"):
        jobs.add(1, ["h0"], 1)


def test_multicast_groups_are_checked() -> None:
    assert multicast_group(3, [2, 1]).replicas == [1, 2]
    with refused(SettingError, problem="needs different ports"):
        multicast_group(3, [1, 1])
    with refused(SettingError, valid="1 to 65535", problem="group 0 is out of range"):
        multicast_group(0, [1])
