"""Reads aggregation jobs back from switches, so that a controller can continue where another one left off.

A job is taken over if the entries on its switches form complete trees; remains of other jobs are removed when the next
plan is written. Hosts notice nothing: epoch, key, ranks and slots do not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import finsy

from weft.controller.arrays import read_register
from weft.controller.counters import JOB_TABLE
from weft.controller.entities import exact_arguments
from weft.controller.errors import JobError, RequestRefusedError, SettingError
from weft.controller.job import Job, PlannedTree
from weft.controller.job_notes import JobNote
from weft.controller.session import SwitchSession
from weft.controller.trees import AggregationTree, TreeChild, TreeNode, TreeParent
from weft.topologies import FabricSpec

MEMBER_TABLE = "aggregation_member"
_TAG_REGISTER = "slot_tag"
_ROUND_BITS = 32


@dataclass(frozen=True)
class HeldJob:
    """A job's entries on one switch: the job's parameters and note, and its children's ports by rank.

    `packets` counts the job's packets received by the switch on the ports of the tree.
    """

    parameters: Mapping[str, int]
    note: bytes
    children: Mapping[int, int]
    packets: int = 0

    @property
    def slots(self) -> range:
        """The job's slots on the switch."""
        base = self.parameters["slot_base"]
        return range(base, base + self.parameters["slot_count"])

    @property
    def ports(self) -> set[int]:
        """The job's ports on the switch: to children and to the parent."""
        return {
            *self.children.values(),
            *(() if self.parameters["is_root"] else (self.parameters["parent_port"],)),
        }


@dataclass(frozen=True)
class HeldJobs:
    """A switch's entries of all jobs, by id, and the epochs that its slots have seen; None if not readable."""

    jobs: Mapping[int, HeldJob]
    epochs: frozenset[int] | None = None


@dataclass(frozen=True)
class Recovery:
    """The jobs found on the switches.

    Attributes:
        jobs: the complete jobs.
        lost: why other jobs are incomplete, by id.
        epochs: epochs that slots have seen.
        knows_epochs: whether all switches reported epochs; BMv2 cannot read registers over P4Runtime.

    """

    jobs: tuple[Job, ...] = ()
    lost: Mapping[int, str] = field(default_factory=dict)
    epochs: frozenset[int] = frozenset()
    knows_epochs: bool = True


async def read_held_jobs(session: SwitchSession) -> HeldJobs:
    """Read a switch's jobs and the epochs that its slots have seen."""
    held = await read_job_entries(session)
    try:
        tags = await read_register(session, _TAG_REGISTER)
    except (RequestRefusedError, SettingError):
        # BMv2 does not read registers over P4Runtime.
        return HeldJobs(held)
    return HeldJobs(held, frozenset(tag >> _ROUND_BITS for tag in tags.values()) - {0})


async def read_job_entries(session: SwitchSession) -> dict[int, HeldJob]:
    """Read the jobs of a switch, by id."""
    if not (session.has_table(JOB_TABLE) and session.counts(MEMBER_TABLE)):
        return {}
    # Count at members' entries, because the job's entry also counts strangers' packets before they are dropped.
    counted = finsy.P4TableEntry(MEMBER_TABLE, counter_data=finsy.P4CounterData())
    entries = await session.read([finsy.P4TableEntry(JOB_TABLE), counted])
    children: dict[int, dict[int, int]] = {}
    packets: Counter[int] = Counter()
    for entry in entries:
        if entry.table_id != MEMBER_TABLE or entry.is_default_action:
            continue
        job_id, arguments = int(entry["job_id"]), exact_arguments(entry.action)
        packets[job_id] += entry.counter_data.packet_count if entry.counter_data else 0
        if "child_rank" in arguments:
            children.setdefault(job_id, {})[arguments["child_rank"]] = int(entry["port"])
    return {
        int(entry["job_id"]): HeldJob(
            exact_arguments(entry.action),
            entry.metadata,
            children.get(int(entry["job_id"]), {}),
            packets[int(entry["job_id"])],
        )
        for entry in entries
        if entry.table_id == JOB_TABLE and not entry.is_default_action
    }


def recovered(fabric: FabricSpec, held: Mapping[str, HeldJobs]) -> Recovery:
    """Return the jobs with consistent entries, given the jobs held by each switch, by switch name."""
    jobs, lost = [], {}
    for job_id in sorted({job_id for of_switch in held.values() for job_id in of_switch.jobs}):
        of_job = {name: each.jobs[job_id] for name, each in held.items() if job_id in each.jobs}
        try:
            jobs.append(_job(fabric, job_id, of_job))
        except JobError as error:
            lost[job_id] = str(error)
    epochs = [each.epochs for each in held.values()]
    return Recovery(
        tuple(jobs),
        lost,
        frozenset().union(*(each for each in epochs if each is not None)),
        None not in epochs,
    )


def _job(fabric: FabricSpec, job_id: int, held: Mapping[str, HeldJob]) -> Job:
    first = next(iter(held.values()))
    same = ("queue_key", "epoch", "ip_version", "slot_count")
    notes = {name: JobNote.of(each.note) for name, each in held.items()}
    note = next(iter(notes.values()))
    for name, each in held.items():
        if any(each.parameters[key] != first.parameters[key] for key in same) or (
            notes[name].tenant,
            notes[name].share,
        ) != (note.tenant, note.share):
            raise JobError(f"{name} and {next(iter(held))} have different parameters of it")
    planes = sorted({fabric.switch(name).plane for name in held})
    trees, workers, places = [], dict[int, str](), set[int]()
    for plane in planes:
        of_plane = {name: each for name, each in held.items() if fabric.switch(name).plane == plane}
        tree = _tree(fabric, plane, of_plane)
        found = _workers(fabric, tree, notes)
        if workers and found != workers:
            raise JobError(f"planes {planes[0]} and {plane} have different workers")
        workers = found
        places |= _places(fabric, tree)
        bases = {node.switch: of_plane[node.switch].parameters["slot_base"] for node in tree.nodes}
        trees.append(PlannedTree(tree, bases))
    if len(places) != 1:
        raise JobError(f"its workers are NICs of different places in their planes: {sorted(places)}")
    return Job(
        job_id=job_id,
        hosts=tuple(workers[number] for number in sorted(workers)),
        planes=tuple(planes),
        slot_count=first.parameters["slot_count"],
        epoch=first.parameters["epoch"],
        q_key=first.parameters["queue_key"],
        trees=tuple(trees),
        ip_version=6 if first.parameters["ip_version"] == 6 else 4,
        tenant=note.tenant,
        share=note.share,
        place=places.pop(),
    )


def _places(fabric: FabricSpec, tree: AggregationTree) -> set[int]:
    """Return the places of a tree's workers among their hosts' NICs in the plane."""
    nics = fabric.nics_of_planes[tree.plane]
    ports = (fabric.switch(end.node).port(end.port) for end in tree.ports())
    return {nics.index(port.peer.port) for port in ports if port.peer_is_host}


def _tree(fabric: FabricSpec, plane: int, held: Mapping[str, HeldJob]) -> AggregationTree:
    nodes = {name: _node(fabric, name, each) for name, each in held.items()}
    roots = [node for node in nodes.values() if node.parent is None]
    if len(roots) != 1:
        raise JobError(f"it has {len(roots)} roots in plane {plane}")
    reached, pending = list[TreeNode](), [roots[0].switch]
    while pending:
        node = nodes[pending.pop(0)]
        reached.append(node)
        for child in node.children:
            if not fabric.switch(node.switch).port(child.port).peer_is_host:
                _require_child(nodes, node, child)
                pending.append(child.name)
        # A cycle of parents, which only entries from several epochs of a job can form.
        if len(reached) > len(nodes):
            raise JobError(f"its entries in plane {plane} make no tree")
    if len(reached) != len(nodes):
        apart = sorted(set(nodes) - {node.switch for node in reached})
        raise JobError(f"no parent in plane {plane} has {apart[0]} as its child")
    return AggregationTree(plane, tuple(reached))


def _node(fabric: FabricSpec, name: str, held: HeldJob) -> TreeNode:
    switch, parameters = fabric.switch(name), held.parameters
    ranks = sorted(held.children)
    if ranks != list(range(len(ranks))) or parameters["full_bitmap"] != (1 << len(ranks)) - 1:
        raise JobError(f"{name} lacks entries of its children")
    if any(not 1 <= port <= len(switch.ports) for port in held.ports):
        raise JobError(f"{name} lacks a port that its entries name")
    children = tuple(TreeChild(switch.port(port).peer.node, port, rank) for rank, port in sorted(held.children.items()))
    if parameters["is_root"]:
        return TreeNode(name, children)
    up = switch.port(parameters["parent_port"])
    return TreeNode(name, children, TreeParent(up.peer.node, up.number, parameters["rank_at_parent"]))


def _require_child(nodes: Mapping[str, TreeNode], node: TreeNode, child: TreeChild) -> None:
    below = nodes.get(child.name)
    if below is None or below.parent is None:
        raise JobError(f"{child.name} has no entries of it, though {node.switch} lists it as a child")
    if (below.parent.name, below.parent.rank) != (node.switch, child.rank):
        raise JobError(f"{child.name} and {node.switch} disagree about its parent")


def _workers(fabric: FabricSpec, tree: AggregationTree, notes: Mapping[str, JobNote]) -> dict[int, str]:
    """Return the hosts by their worker numbers in the whole job."""
    found: dict[int, str] = {}
    for node in tree.nodes:
        hosts = node.hosts(fabric)
        # Entries identify a worker by its rank below a switch; only the note has its number in the whole job.
        numbers = notes[node.switch].workers
        if len(hosts) != len(numbers):
            raise JobError(f"{node.switch} notes {len(numbers)} workers and has {len(hosts)}")
        found |= dict(zip(numbers, hosts, strict=True))
    if sorted(found) != list(range(len(found))) or len(found) != len(set(found.values())):
        raise JobError(f"plane {tree.plane} has workers {sorted(found)[:20]}")
    return found
