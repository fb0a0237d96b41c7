"""A switch's entries for aggregation jobs: jobs, members by port, and the children's multicast group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import finsy

from weft.controller.counters import JOB_TABLE
from weft.controller.entities import Entity, entry, exact_arguments
from weft.controller.features.kind import Feature, Row, port_name
from weft.controller.features.multicast import multicast_group
from weft.controller.job_notes import JobNote
from weft.controller.job_rates import meter_of_worker, promised_bps
from weft.controller.trees import TreeNode, place_in_tree
from weft.controller.worker_ranges import worker_ranges
from weft.topologies import FabricSpec, SwitchSpec

if TYPE_CHECKING:
    from weft.controller.job import Job
    from weft.controller.lab import Lab
    from weft.controller.session import SwitchSession

JOB_ACTION = "set_job"
CHILD_TABLE = "aggregation_child"


def aggregation_entities(fabric: FabricSpec, jobs: Iterable[Job]) -> dict[str, list[Entity]]:
    """Return the entities of all jobs, by switch name; switches without jobs are omitted."""
    entities: dict[str, list[Entity]] = {}
    for job in jobs:
        for planned in job.trees:
            workers = worker_ranges(planned.tree)
            rate_bps = promised_bps(fabric, job, planned.tree)
            meter = meter_of_worker(job, rate_bps) if rate_bps else None
            for node in planned.tree.nodes:
                slot_base = planned.slot_base[node.switch]
                node_entities = _node_entities(fabric, job, node, slot_base, workers, meter)
                entities.setdefault(node.switch, []).extend(node_entities)
    return entities


def _node_entities(
    fabric: FabricSpec,
    job: Job,
    node: TreeNode,
    slot_base: int,
    workers: Mapping[str, range],
    meter: finsy.P4MeterConfig | None,
) -> list[Entity]:
    # Job ids are unique on a switch and fit a group id, so the job's group has the job's number.
    entities: list[Entity] = [
        multicast_group(job.job_id, [child.port for child in node.children]),
        _job_entry(fabric, job, node, slot_base),
    ]
    for child in node.children:
        match = {"job_id": job.job_id, "port": child.port}
        is_switch = not fabric.switch(node.switch).port(child.port).peer_is_host
        member = entry(
            "aggregation_member",
            match,
            "child",
            child_rank=child.rank,
            child_bit=1 << child.rank,
            is_switch=int(is_switch),
        )
        # Only workers need meters: a switch sends no more than its children, and workers are metered at their leaf.
        entities.append(member if is_switch else replace(member, meter_config=meter))
        below = workers[child.name]
        entities.append(entry(CHILD_TABLE, match, "leads_to", first_worker=below.start, last_worker=below.stop - 1))
    if node.parent:
        match = {"job_id": job.job_id, "port": node.parent.port}
        entities.append(entry("aggregation_member", match, "parent"))
    return entities


def _job_entry(fabric: FabricSpec, job: Job, node: TreeNode, slot_base: int) -> Entity:
    workers = tuple(job.hosts.index(host) for host in node.hosts(fabric))
    planned = entry(
        "aggregation_job",
        {"job_id": job.job_id},
        JOB_ACTION,
        queue_key=job.q_key,
        epoch=job.epoch,
        ip_version=job.ip_version,
        slot_base=slot_base,
        slot_count=job.slot_count,
        **place_in_tree(fabric, node, job.ip_version),
        multicast_group=job.job_id,
        worker_count=len(job.hosts),
    )
    return replace(planned, metadata=JobNote(job.tenant, job.share, workers).as_bytes())


async def tree_rows(session: SwitchSession, spec: SwitchSpec | None, _lab: Lab) -> list[Row]:
    """Return a row for each aggregation job on a switch: its place in the tree, slots and children by rank."""
    entries = await session.read(
        [
            finsy.P4TableEntry(JOB_TABLE, counter_data=finsy.P4CounterData()),
            finsy.P4TableEntry("aggregation_member"),
        ]
    )
    children: dict[int, list[tuple[int, int]]] = {}
    for found in entries:
        arguments = exact_arguments(found.action)
        if found.table_id == "aggregation_member" and "child_rank" in arguments:
            children.setdefault(int(found["job_id"]), []).append((arguments["child_rank"], int(found["port"])))
    rows = []
    for found in entries:
        if found.table_id != JOB_TABLE:
            continue
        job_id, arguments = int(found["job_id"]), exact_arguments(found.action)
        base, size = arguments["slot_base"], arguments["slot_count"]
        rows.append(
            {
                "switch": session.name,
                "job": job_id,
                "epoch": arguments["epoch"],
                "role": "root" if arguments["is_root"] else "node",
                "parent": None if arguments["is_root"] else port_name(spec, arguments["parent_port"]),
                "children": [port_name(spec, port) for _, port in sorted(children.get(job_id, []))],
                "slots": f"{base}-{base + size - 1}",
                "packets": found.counter_data.packet_count if found.counter_data else 0,
            }
        )
    return rows


KIND = Feature(
    name="aggregation trees",
    summary="Aggregation jobs: each switch's place in their trees, its children, slots and packets.",
    tables=(JOB_TABLE, "aggregation_member", CHILD_TABLE),
    of_jobs=aggregation_entities,
    command="trees",
    rows=tree_rows,
)
