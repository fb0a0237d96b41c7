"""A controller that has lost all it knew of jobs reads them back from the switches, while reductions go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import finsy
import numpy as np
import pytest
from finsy.proto import p4r

from tests.refusals import refused
from weft import Fabric
from weft.controller.errors import JobError
from weft.controller.features.aggregation import aggregation_entities
from weft.controller.job_notes import JobNote
from weft.controller.jobs import MAX_EPOCH, JobTable
from weft.controller.queue_keys import repeatable_queue_keys
from weft.controller.recovery import HeldJob, HeldJobs, recovered
from weft.run.collectives import CollectiveRequest
from weft.scenario.tenants import TenantSection
from weft.scenario.transport import TransportSection
from weft.topologies import leaf_spine

US = 10**6
TENANTS = {"blue": TenantSection(slots=512, bandwidth=0.5)}


def lab_fabric(**options) -> Fabric:
    topology = leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=3, host_rate_bps=100 * 10**9)
    return Fabric(topology, clock="virtual", slots=64, tenants=TENANTS, **options)


def test_a_reduction_ends_exact_though_the_manager_forgets_its_jobs_meanwhile() -> None:
    inputs = [np.random.default_rng(rank).integers(-99, 99, 100_000, np.int32) for rank in range(3)]
    with lab_fabric() as fabric:
        controller = fabric.lab.controller.controller
        alone = fabric.run(CollectiveRequest("allreduce", inputs, "in-network", ranks=[4, 0, 2], tenant="blue"))
        known = controller.memberships(1)
        found = []

        async def restart() -> None:
            await asyncio.sleep(20e-6)  # of virtual time
            assert fabric.hosts.now_ps() < began_ps + alone.result.time_ps
            found.append(await controller.recover())
            found.append(await controller.apply())
            # The next job respects what the first one has, and has an epoch of its own.
            await controller.add_job(2, ["h1", "h0"], 64)

        began_ps = fabric.hosts.now_ps()
        fabric.lab.controller.call(fabric.lab.operations.begin(restart()))
        run = fabric.run(CollectiveRequest("allreduce", inputs, "in-network", ranks=[4, 0, 2], tenant="blue"))
        assert run.result.ok
        assert run.result.time_ps == alone.result.time_ps
        recovery, written = found
        # Reads leave out default actions, one a switch; nothing else is written.
        assert (recovery.lost, written.entries) == ({}, len(fabric.topology.switches))
        assert controller.memberships(1) == known
        first, second = controller.jobs
        assert (first.tenant, first.share, first.hosts, first.epoch) == ("blue", 0.5, ("h4", "h0", "h2"), 1)
        assert second.epoch == 2
        for planned in second.trees:
            assert set(planned.slot_base.values()) == {0}  # the slots of nobody; those of blue are behind them
        assert first.trees[0].slot_base["p0l0"] == 4096 - 512
        # Once more, and without the other job: the hosts still have theirs.
        fabric.lab.controller.remove_job(2)
        assert fabric.run(
            CollectiveRequest("allreduce", inputs, "in-network", ranks=[4, 0, 2], tenant="blue")
        ).result.ok
        assert [job.epoch for job in controller.jobs] == [1]
        fabric.summary()


def test_new_jobs_take_no_epoch_that_slots_have_seen() -> None:
    """Jobs of epochs 1 to 3 have come and gone; their sums still lie in the slots."""
    inputs = [np.ones(5000, np.int32)] * 3
    with lab_fabric(transport=TransportSection(connections="kept")) as fabric:
        blocking = fabric.lab.controller
        for ranks in ([1, 3, 5], [0, 1, 2], [3, 4, 5]):
            fabric.run(CollectiveRequest("allreduce", inputs, "in-network", ranks=ranks))
        blocking.remove_job(1)
        found = blocking.recover()
        assert (found.jobs, found.epochs, found.knows_epochs) == ((), frozenset({1, 2, 3}), True)
        memberships = blocking.add_job(7, ["h0", "h3"], 64)
        assert memberships["h0"][0].epoch == 4


def test_what_is_left_of_a_broken_job_is_removed_and_its_slots_are_free() -> None:
    inputs = [np.ones(500, np.int32)] * 6
    with lab_fabric() as fabric:
        blocking = fabric.lab.controller
        fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
        blocking.add_job(9, ["h0", "h1"], 32, planes=[1])
        session = blocking.session("p1l1")
        held = blocking.read("p1l1", [finsy.P4TableEntry("aggregation_job")])
        (entry,) = [each for each in held if not each.is_default_action]
        encoded = next(iter(session.encode([entry]).values()))
        blocking.call(session.write([encoded.update(p4r.Update.DELETE)]))
        found = blocking.recover()
        assert [job.job_id for job in found.jobs] == [9]
        assert found.lost.keys() == {1}
        assert "p1l1 has no entries of it" in found.lost[1]
        assert blocking.apply().entries > 0
        for switch in fabric.topology.switches:
            left = blocking.read(switch.name, [finsy.P4TableEntry("aggregation_member")])
            assert {int(each["job_id"]) for each in left if not each.is_default_action} <= {9}
        assert blocking.add_job(1, [host.name for host in fabric.topology.hosts], 4096 - 512 - 96)


TOPOLOGY = leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=2)


def held_of(jobs: JobTable) -> dict[str, HeldJobs]:
    """Return what switches hold of jobs, as they would say it."""
    held: dict[str, dict[int, HeldJob]] = {switch.name: {} for switch in TOPOLOGY.switches}
    for name, entities in aggregation_entities(TOPOLOGY, jobs.jobs).items():
        entries = [each for each in entities if isinstance(each, finsy.P4TableEntry)]
        for entry in entries:
            if entry.table_id == "aggregation_job":
                job_id = entry.match["job_id"]
                children = {
                    other.action.args["child_rank"]: other.match["port"]
                    for other in entries
                    if other.match.get("job_id") == job_id and "child_rank" in other.action.args
                }
                held[name][job_id] = HeldJob(dict(entry.action.args), entry.metadata, children)
    return {name: HeldJobs(each) for name, each in held.items()}


def job_table() -> JobTable:
    jobs = JobTable(TOPOLOGY, 100, repeatable_queue_keys(1))
    jobs.add(1, ["h5", "h0", "h1", "h2"], 10)
    jobs.add(2, ["h3"], 10)
    jobs.add(3, ["h0", "h4"], 20, ip_version=6)
    return jobs


def test_jobs_are_what_their_entries_say() -> None:
    before = job_table()
    found = recovered(TOPOLOGY, held_of(before))
    assert (found.lost, found.knows_epochs) == ({}, False)
    after = JobTable(TOPOLOGY, 100)
    assert not after.adopt(found.jobs)
    for job in before.jobs:
        assert after.memberships(job.job_id) == before.memberships(job.job_id)
        assert replace(after.job(job.job_id), trees=()) == replace(job, trees=())
    assert held_of(after) == held_of(before)
    assert {name: after.pool(name).free for name in held_of(after)} == {
        name: before.pool(name).free for name in held_of(before)
    }


def changed(switch: str, job_id: int, **changes) -> dict[str, HeldJobs]:
    held = held_of(job_table())
    jobs = dict(held[switch].jobs)
    jobs[job_id] = replace(jobs[job_id], **changes)
    return held | {switch: HeldJobs(jobs)}


PARAMETERS = held_of(job_table())["p0l0"].jobs[1].parameters


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"note": b""}, "no note"),
        ({"note": b"[1]"}, "no note"),
        ({"note": b'{"tenant": 3, "share": 0, "workers": [0, 1]}'}, "note is not a manager's"),
        ({"note": b'{"tenant": "", "share": ' + b"9" * 400 + b', "workers": [0, 1]}'}, "no note"),
        ({"note": b"[" * 4096}, "no note"),
        ({"note": b'{"tenant": "", "share": 0, "workers": ' + b"[" * 4096}, "no note"),
        *(
            ({"note": b'{"tenant": "", "share": %s, "workers": [0, 1]}' % share}, "note is not a manager's")
            for share in (b"1e400", b"-1e400", b"NaN", b"1.01", b"-0.01")
        ),
        *(
            ({"note": JobNote(name, 0.0, (0, 1)).as_bytes()}, "note is not a manager's")
            for name in ("\ud800", "\x1b[2J")
        ),
        ({"note": JobNote("blue", 0.0, (1, 2)).as_bytes()}, "have different parameters of it"),
        ({"note": JobNote("", 0.0, (1,)).as_bytes()}, "notes 1 workers and has 2"),
        ({"note": JobNote("", 0.0, (1, 7)).as_bytes()}, "has workers"),
        ({"parameters": {**PARAMETERS, "epoch": 9}}, "have different parameters of it"),
        ({"parameters": {**PARAMETERS, "full_bitmap": 7}}, "lacks entries of its children"),
        ({"parameters": {**PARAMETERS, "rank_at_parent": 2}}, "disagree about its parent"),
        ({"parameters": {**PARAMETERS, "parent_port": 99}}, "lacks a port that its entries name"),
        ({"parameters": {**PARAMETERS, "is_root": 1}}, "2 roots"),
        ({"children": {0: 1}}, "lacks entries of its children"),
    ],
)
def test_entries_that_do_not_fit_together_are_no_job(changes, why) -> None:
    found = recovered(TOPOLOGY, changed("p0l0", 1, **changes))
    assert [job.job_id for job in found.jobs] == [2, 3]
    assert why in found.lost[1]


def test_jobs_that_share_slots_are_not_both_taken_over() -> None:
    parameters = held_of(job_table())["p0l0"].jobs[3].parameters
    found = recovered(TOPOLOGY, changed("p0l0", 3, parameters={**parameters, "slot_base": 5}))
    after = JobTable(TOPOLOGY, 100)
    assert after.adopt(found.jobs) == {3: "jobs 3 and 1 share slots on p0l0"}
    assert after.pool("p0l2").free == 90
    with refused(JobError, valid="1, 2", problem="unknown job 3"):
        after.job(3)


def test_epochs_that_slots_have_seen_are_passed_over_unless_they_are_all() -> None:
    jobs = JobTable(TOPOLOGY, 100, first_epoch=MAX_EPOCH)
    jobs.adopt((), range(1, 5))
    assert [jobs.add(number, ["h0"], 1).epoch for number in (1, 2)] == [MAX_EPOCH, 5]
    jobs.adopt((), range(1, MAX_EPOCH + 1))
    assert jobs.add(3, ["h0"], 1).epoch
