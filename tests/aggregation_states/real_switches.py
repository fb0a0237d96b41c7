"""The switches of a reduction as functions: slots and a packet in, slots and packets out, computed by the real program.

The controller fills the tables of native switches that run `fabric.p4`. Registers of the slots are written before a
packet is given to the switch, and read after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.controller.emulated_fabric import emulated
from weft.compiler.artifacts import compile_artifacts
from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import FabricController
from weft.controller.grpc_targets import embedded_targets
from weft.controller.memberships import JobMembership
from weft.controller.pipeline import Pipeline
from weft.controller.queue_keys import repeatable_queue_keys
from weft.paths import FABRIC_P4
from weft.switch.native import NativeSwitch
from weft.topologies import Endpoint, leaf_spine
from weft.traffic.layers import aggregation_frame

FABRIC = leaf_spine(planes=2, leaves=2, spines=2, hosts_per_leaf=2)
WORKERS = ("h0", "h1", "h2")
"""Two below one leaf, one below the other: a node that collects, and one whose slots are full at once."""
JOB_ID = 1
OTHER_JOB_ID = 2
"""Of the job that carries a stream over the other plane."""
LEAVES = ("p0l0", "p0l1")
_SLOT_REGISTERS = "FabricIngress.aggregation.slot_"

_LANE = re.compile(f"{re.escape(_SLOT_REGISTERS)}lane([0-9]+)")
_LANES_KEPT = 3
"""Of each slot. Contributions have zeros in all others, and the program treats all lanes alike."""

Cells = tuple[int, ...]
"""What a switch's registers hold in the slots of the job."""
Sent = tuple[str, int, bytes]
"""A packet on its way: the node that it is going to, the port there, and its bytes."""
Prepare = Callable[[BlockingFabricController], Mapping[str, tuple[JobMembership, ...]]]
"""Has a controller make the job; returns what the workers must know."""


def compiled(folder: Path, mutate: Mapping[str, str] = {}) -> Pipeline:
    """Compile `fabric.p4`, with pieces of `aggregation.p4` replaced by others."""
    for source in FABRIC_P4.parent.rglob("*.p4"):
        copy = folder / source.relative_to(FABRIC_P4.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text()
        if source.name == "aggregation.p4":
            for piece, other in mutate.items():
                assert text.count(piece) == 1, f"{text.count(piece)} times in the program: {piece}"
                text = text.replace(piece, other)
        copy.write_text(text)
    artifacts = compile_artifacts(folder / FABRIC_P4.name)
    (folder / "fabric.txtpb").write_text(artifacts.p4info_text)
    (folder / "fabric.json").write_text(artifacts.json_text)
    return Pipeline.load(folder / "fabric.txtpb", folder / "fabric.json")


def _is_kept(register: str) -> bool:
    """Return whether a register is one of slots whose content may change."""
    lane = _LANE.fullmatch(register)
    return register.startswith(_SLOT_REGISTERS) and (lane is None or int(lane[1]) < _LANES_KEPT)


@dataclass(eq=False)
class Node:
    """A switch with the tables of one epoch; `cells` are the registers of the job's slots."""

    name: str
    switch: NativeSwitch
    cells: list[tuple[str, int]]
    runs: int = 0

    def take(self, held: Cells, port: int, frame: bytes) -> tuple[Cells, tuple[Sent, ...]]:
        """Return what the slots hold after a packet, and what the switch sends because of it."""
        self.runs += 1
        for (register, index), value in zip(self.cells, held, strict=True):
            self.switch.register_write(register, index, value)
        outputs = self.switch.process(port, frame)
        after = tuple(self.switch.register_read(register, index) for register, index in self.cells)
        return after, tuple(self._sent(*output) for output in outputs)

    def _sent(self, port: int, frame: bytes) -> Sent:
        peer = FABRIC.switch(self.name).port(port).peer
        return peer.node, peer.port, frame


@dataclass(frozen=True)
class Epoch:
    """A life of the job: its workers' memberships, and the switches with the tables of then."""

    memberships: Mapping[str, JobMembership]
    nodes: Mapping[str, Node]

    @property
    def slot_count(self) -> int:
        """The job's slots."""
        return next(iter(self.memberships.values())).slot_count

    def contribution(self, worker: str, slot: int, round_number: int, lanes: Iterable[int]) -> Sent:
        """Return what a worker sends."""
        membership = self.memberships[worker]
        nic = FABRIC.host(worker).nic(FABRIC.first_nics[membership.plane])
        frame = aggregation_frame(
            source_mac=nic.mac,
            destination_mac=membership.aggregation_mac,
            source_ip=str(nic.ipv4.ip),
            destination_ip=str(membership.aggregation_address),
            qkey=membership.q_key,
            job_id=membership.job_id,
            epoch=membership.epoch,
            slot=slot,
            round_number=round_number,
            rank=membership.rank,
            lanes=list(lanes),
        )
        return nic.switch, nic.switch_port, bytes(frame)


def epoch(pipeline: Pipeline, prepare: Prepare) -> Epoch:
    """Return switches whose tables a controller has filled, and what it has the workers know."""
    with (
        emulated(FABRIC, native=True) as fabric,
        BlockingFabricController(
            FabricController(
                FABRIC,
                pipeline,
                embedded_targets(FABRIC, fabric.address),
                queue_keys=repeatable_queue_keys(1),
            )
        ) as control,
    ):
        memberships = {host: own for host, (own,) in prepare(control).items()}
        (job,) = control.jobs
        (planned,) = job.trees
        nodes = {}
        for name, base in planned.slot_base.items():
            switch = fabric.switches[name]
            registers = [each for each in switch.program.register_arrays if _is_kept(each)]
            assert len(registers) > _LANES_KEPT, "the program has no registers of slots"
            versions = range(2 * base, 2 * (base + job.slot_count))
            nodes[name] = Node(name, switch, [(each, index) for index in versions for each in registers])
    return Epoch(memberships, nodes)


def first_epoch(pipeline: Pipeline, slot_count: int) -> Epoch:
    """Return the job's first life."""
    return epoch(pipeline, lambda control: _added(control, WORKERS, slot_count))


def _added(
    control: BlockingFabricController,
    workers: Sequence[str],
    slot_count: int,
    job_id: int = JOB_ID,
    plane: int = 0,
) -> Mapping[str, tuple[JobMembership, ...]]:
    return control.add_job(job_id, list(workers), slot_count, [plane])


def epochs_over_two_planes(pipeline: Pipeline, slot_count: int, workers: Sequence[str], count: int) -> list[Epoch]:
    """Return lives of a stream whose plane is lost, goes over the other one, and comes home as that is lost, too."""

    def prepare(control: BlockingFabricController, life: int) -> Mapping[str, tuple[JobMembership, ...]]:
        known = _added(control, workers, slot_count)
        for number in range(life):
            lost, other = number % 2, 1 - number % 2
            for worker in workers:
                nic = FABRIC.host(worker).nic(FABRIC.first_nics[other])
                control.link_up(FABRIC.link_at(Endpoint(nic.switch, nic.switch_port)))
            for worker in workers:
                nic = FABRIC.host(worker).nic(FABRIC.first_nics[lost])
                control.link_down(FABRIC.link_at(Endpoint(nic.switch, nic.switch_port)))
            control.discard_job((JOB_ID, OTHER_JOB_ID)[lost])
            known = _added(control, workers, slot_count, (JOB_ID, OTHER_JOB_ID)[other], other)
        return known

    return [epoch(pipeline, partial(prepare, life=life)) for life in range(count)]


def epoch_after_a_failed_uplink(pipeline: Pipeline, slot_count: int) -> Epoch:
    """Return the job's second life, over the other spine."""

    def prepare(control: BlockingFabricController) -> Mapping[str, tuple[JobMembership, ...]]:
        _added(control, WORKERS, slot_count)
        (root,) = {node.switch for job in control.jobs for node in (job.trees[0].tree.root,)}
        return control.link_down(FABRIC.link_between(LEAVES[0], root)).memberships[JOB_ID]

    return epoch(pipeline, prepare)


def epoch_of_survivors(pipeline: Pipeline, slot_count: int) -> Epoch:
    """Return a job of the workers that are left when the second one has died, in the next epoch."""

    def prepare(control: BlockingFabricController) -> Mapping[str, tuple[JobMembership, ...]]:
        _added(control, WORKERS, slot_count)
        control.remove_job(JOB_ID)
        return _added(control, [WORKERS[0], WORKERS[2]], slot_count)

    return epoch(pipeline, prepare)
