"""What a switch must hold of the aggregation jobs: jobs, members by port, children's group."""

from __future__ import annotations

from collections.abc import Iterable

from weft.controller.entities import Entity, entry
from weft.controller.jobs import Job
from weft.controller.multicast import multicast_group
from weft.controller.trees import TreeNode
from weft.topologies import FabricSpec

_NO_MAC = "00:00:00:00:00:00"


def aggregation_entities(fabric: FabricSpec, jobs: Iterable[Job]) -> dict[str, list[Entity]]:
    """Entities of all jobs, by switch name; switches without a job are left out."""
    entities: dict[str, list[Entity]] = {}
    for job in jobs:
        for planned in job.trees:
            for node in planned.tree.nodes:
                node_entities = _node_entities(fabric, job, node, planned.slot_base[node.switch])
                entities.setdefault(node.switch, []).extend(node_entities)
    return entities


def _node_entities(fabric: FabricSpec, job: Job, node: TreeNode, slot_base: int) -> list[Entity]:
    # Job ids are unique on a switch and fit a group id, so the job's group has the job's number.
    entities: list[Entity] = [
        multicast_group(job.job_id, [child.port for child in node.children]),
        _job_entry(fabric, job, node, slot_base),
    ]
    for child in node.children:
        match = {"job_id": job.job_id, "port": child.port}
        is_switch = int(not fabric.switch(node.switch).port(child.port).peer_is_host)
        child_bit = 1 << child.rank
        entities.append(
            entry(
                "aggregation_member",
                match,
                "child",
                child_rank=child.rank,
                child_bit=child_bit,
                is_switch=is_switch,
            )
        )
    if node.parent:
        match = {"job_id": job.job_id, "port": node.parent.port}
        entities.append(entry("aggregation_member", match, "parent"))
    return entities


def _job_entry(fabric: FabricSpec, job: Job, node: TreeNode, slot_base: int) -> Entity:
    parent = fabric.switch(node.parent.name) if node.parent else None
    return entry(
        "aggregation_job",
        {"job_id": job.job_id},
        "set_job",
        queue_key=job.q_key,
        epoch=job.epoch,
        ip_version=job.ip_version,
        slot_base=slot_base,
        slot_count=job.slot_count,
        full_bitmap=node.full_bitmap,
        is_root=0 if node.parent else 1,
        parent_port=node.parent.port if node.parent else 0,
        parent_mac=parent.mac if parent else _NO_MAC,
        # The program has one parameter for both versions and widens IPv4 with zeros in front.
        parent_address=int(parent.address_of(job.ip_version)) if parent else 0,
        rank_at_parent=node.parent.rank if node.parent else 0,
        multicast_group=job.job_id,
    )
