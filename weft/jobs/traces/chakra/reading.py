"""Converts one rank's Chakra file to the rank's operations."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import repeat
from typing import Any

import numpy as np

from weft.jobs.traces.assembling import JobAssembler, RankAssembler, check_count
from weft.jobs.traces.chakra import own_data
from weft.jobs.traces.chakra.attributes import Attributes
from weft.jobs.traces.chakra.collectives import call_of
from weft.jobs.traces.chakra.framing import parsed, unframed
from weft.jobs.traces.chakra.messages import GlobalMetadata, Node, NodeType
from weft.jobs.traces.chakra.process_groups import ProcessGroups
from weft.jobs.traces.definition import ReadOptions
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.memory import STATEMENTS_BETWEEN_CHECKS, check_memory
from weft.quantities.units import PS_PER_US
from weft.traffic.jobs import NO_STREAM, OperationsError

MAX_MICROSECONDS = 10**12
_GROUPS_RECORDED = "process_group"
"""Part of the name of the node in which PyTorch records process groups."""
ACCELERATOR_STREAM, PROCESSOR_STREAM, MEMORY_STREAM = 0, 1, 2
_USED = {
    "is_cpu_op", "num_ops", "tensor_size", "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "pg_name",
}  # fmt: skip
_RECORDED_BY_PYTORCH = "op_schema"
"""An attribute only of nodes recorded by PyTorch's execution trace observer."""
_COMMUNICATION = {int(each) for each in (NodeType.SEND, NodeType.RECEIVE, NodeType.COLLECTIVE)}


def _is_launch(attributes: Attributes, place: str) -> bool:
    """Whether a communication node is only the processor's part (PyTorch's `c10d::allreduce_`).

    Another node, the accelerator's kernel with type and size, is the transfer. ASTRA-sim computes here, too.
    """
    return attributes.flag("is_cpu_op", place) and not any(name.startswith("comm_") for name in attributes.names())


class RankReader:
    """Reads one rank's file.

    After `read`, `node_ids` are the nodes of its operations, `ignored` counts unread attributes, `callers` the control
    dependencies left out, `launches` communication nodes that are only the processor's part, and `transfers` all other
    communication nodes.
    """

    def __init__(self, job: JobAssembler, groups: ProcessGroups, rank: int, source: str, options: ReadOptions) -> None:
        self._job = job
        self._groups = groups
        self._rank = rank
        self._source = source
        self._options = options
        self._assembler = RankAssembler()
        self._operations: array[int] = array("q")
        self._after: array[int] = array("Q")
        self._called: array[int] = array("q")
        self._callers: array[int] = array("Q")
        self._start_edges: list[tuple[int, int]] = []
        self._adders = {
            NodeType.INVALID: self._add_nothing,
            NodeType.METADATA: self._add_metadata,
            NodeType.MEMORY_LOAD: self._add_memory,
            NodeType.MEMORY_STORE: self._add_memory,
            NodeType.COMPUTE: self._add_compute,
            NodeType.SEND: self._add_send,
            NodeType.RECEIVE: self._add_receive,
            NodeType.COLLECTIVE: self._add_collective,
        }
        self.node_ids: array[int] = array("Q")
        self.ignored: Counter[str] = Counter()
        self.callers = 0
        self.launches = 0
        self.transfers = 0
        self._is_recorded = False

    def read(self, data: bytes) -> RankAssembler:
        """Return the rank's operations. Raises TraceError, with file and node, for an invalid file."""
        number = -1
        for number, message in enumerate(unframed(data, self._source)):
            if number == 0:
                self._read_metadata(parsed(GlobalMetadata, message, self._source, number))
            else:
                self._read_node(parsed(Node, message, self._source, number), number)
        if number < 0:
            raise TraceError("the file is empty", place=self._source, valid="GlobalMetadata, then nodes")
        self._link()
        return self._assembler

    def _read_metadata(self, metadata: Any) -> None:
        text = Attributes(metadata).text(own_data.FILE_ATTRIBUTE, self._source)
        if not text:
            return
        data = own_data.rank_data(text, self._source)
        self._assembler = RankAssembler(tuple(data.peers), tuple(data.groups))
        self._assembler.compute_scale = data.compute_scale
        self._assembler.communication_share = data.communication_share
        if data.job is not None and self._rank == 0:
            self._groups.rename(data.job.group_names, self._source)
            own_data.apply_to_job(data.job, self._job, self._source)

    def _read_node(self, node: Any, number: int) -> None:
        place = f"{self._source}: node {node.id}"
        try:
            add = self._adders[NodeType(node.type)]
        except ValueError:
            valid = ", ".join(f"{each.name} {each.value}" for each in NodeType)
            raise TraceError(f"type {node.type}", place=place, valid=valid) from None
        attributes = Attributes(node)
        if node.type in _COMMUNICATION:
            if _is_launch(attributes, place):
                add = self._add_compute
                self.launches += 1
            else:
                self.transfers += 1
        try:  # of each node: a context manager would take longer
            add(node, attributes, place)
        except OperationsError as error:
            raise TraceError(error, place=place) from None
        if number % STATEMENTS_BETWEEN_CHECKS == 0:
            check_memory(self._job.operation_count + number, place)
        self.node_ids.append(node.id)
        self._is_recorded = self._is_recorded or _RECORDED_BY_PYTORCH in attributes
        self.ignored.update(attributes.names() - _USED - own_data.NODE_ATTRIBUTES)
        self._note_dependencies(node, attributes, number - 1, place)

    def _note_dependencies(self, node: Any, attributes: Attributes, operation: int, place: str) -> None:
        after_start = attributes.numbers(own_data.AFTER_START, place)
        # ASTRA-sim waits for both, too (RESOLVE_CTRL_DEPS of Chakra's feeder, version 3).
        after, callers = node.data_deps, node.ctrl_deps
        if after_start is not None:
            after, callers = attributes.numbers(own_data.AFTER, place) or [], []
            self._start_edges.extend((operation, each) for each in after_start)
        # Checked before unpacking, which turns a few hundred megabytes into gigabytes.
        kept = len(self._after) + len(self._callers)
        check_count(operation, kept + len(after) + len(callers), place)
        self._after.extend(after)
        self._operations.extend(repeat(operation, len(after)))
        self._callers.extend(callers)
        self._called.extend(repeat(operation, len(callers)))

    def _link(self) -> None:
        """Add dependencies between operations, from the node numbers that nodes depend on."""
        ids = np.array(self.node_ids, np.uint64)
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        for twice in np.flatnonzero(ordered[1:] == ordered[:-1])[:1]:
            raise TraceError(f"node {ordered[twice]} occurs twice", place=self._source, valid="each number once")
        if self._is_recorded:
            # PyTorch's control dependencies name callers, which may be missing from the file or wait for their callees.
            # Chakra's converter puts the order of execution into the data dependencies.
            self.callers = len(self._callers)
            del self._called[:], self._callers[:]
        for operations, after, start in (
            (np.array(self._operations, np.int64), np.array(self._after, np.uint64), False),
            (np.array(self._called, np.int64), np.array(self._callers, np.uint64), False),
            (
                np.array([each for each, _ in self._start_edges], np.int64),
                np.array([each for _, each in self._start_edges], np.uint64),
                True,
            ),
        ):
            places = np.searchsorted(ordered, after)
            known = (places < len(ids)) & (ordered[np.minimum(places, len(ids) - 1)] == after if len(ids) else False)
            for bad in np.flatnonzero(~known)[:1]:
                raise TraceError(
                    f"node {ids[operations[bad]]} depends on node {after[bad]}, which does not exist",
                    place=self._source,
                )
            self._assembler.operations.add_edges(operations, order[places], start)

    def _common(self, node: Any, attributes: Attributes, place: str, stream: int) -> dict[str, Any]:
        """Return the arguments that all kinds of operations take."""
        if own_data.STREAM in attributes:
            stream = attributes.integer(own_data.STREAM, place) - 1
        return {
            "stream": stream,
            "name": node.name,
            "category": attributes.text(own_data.CATEGORY, place),
        }

    def _recorded_ps(self, node: Any, attributes: Attributes, place: str) -> int:
        if own_data.DURATION in attributes:
            return attributes.integer(own_data.DURATION, place)
        if node.duration_micros > MAX_MICROSECONDS:
            raise TraceError(f"a duration of {node.duration_micros} µs", place=place, valid=f"0 to {MAX_MICROSECONDS}")
        return int(node.duration_micros) * PS_PER_US

    def _add_nothing(self, node: Any, attributes: Attributes, place: str) -> None:
        self._assembler.operations.compute(0, **self._common(node, attributes, place, NO_STREAM))

    def _add_metadata(self, node: Any, attributes: Attributes, place: str) -> None:
        if _GROUPS_RECORDED in node.name:
            self._groups.add_recorded(node.inputs.values, place)
        self._add_nothing(node, attributes, place)

    def _add_memory(self, node: Any, attributes: Attributes, place: str) -> None:
        duration_ps = self._modelled_ps(node, 0, attributes.integer("tensor_size", place, 0), attributes, place)
        self._assembler.operations.compute(duration_ps, **self._common(node, attributes, place, MEMORY_STREAM))

    def _add_compute(self, node: Any, attributes: Attributes, place: str) -> None:
        if attributes.flag(own_data.TIMER, place):
            common = self._common(node, attributes, place, NO_STREAM)
            del common["stream"]
            self._assembler.operations.timer(self._recorded_ps(node, attributes, place), **common)
            return
        if attributes.flag("is_cpu_op", place):
            stream, duration_ps = PROCESSOR_STREAM, self._recorded_ps(node, attributes, place)
        else:
            stream = ACCELERATOR_STREAM
            operations = attributes.integer("num_ops", place, 0)
            moved_bytes = attributes.integer("tensor_size", place, 0)
            duration_ps = self._modelled_ps(node, operations, moved_bytes, attributes, place)
        self._assembler.operations.compute(duration_ps, **self._common(node, attributes, place, stream))

    def _modelled_ps(self, node: Any, operations: int, moved_bytes: int, attributes: Attributes, place: str) -> int:
        """Return the roofline's duration if one was requested and the node has the figures, else the recorded one."""
        roofline = self._options.roofline
        if own_data.DURATION not in attributes and (operations or moved_bytes):
            if roofline is not None:
                return roofline.duration_ps(operations, moved_bytes)
            if not node.duration_micros:
                raise TraceError(
                    f"{operations} operations on {moved_bytes} B and no duration, so an accelerator must be given",
                    place=place,
                )
        return self._recorded_ps(node, attributes, place)

    def _add_send(self, node: Any, attributes: Attributes, place: str) -> None:
        sender = attributes.integer("comm_src", place, self._rank)
        if sender != self._rank:
            raise TraceError(f"rank {sender} sends (valid in this file: {self._rank})", place=place)
        peer = self._peer_slot(attributes.integer("comm_dst", place), place)
        self._assembler.operations.send(
            peer, *self._size_and_tag(attributes, place), **self._common(node, attributes, place, NO_STREAM)
        )

    def _add_receive(self, node: Any, attributes: Attributes, place: str) -> None:
        receiver = attributes.integer("comm_dst", place, self._rank)
        if receiver != self._rank:
            raise TraceError(f"rank {receiver} receives (valid in this file: {self._rank})", place=place)
        peer = self._peer_slot(attributes.integer("comm_src", place), place)
        self._assembler.operations.receive(
            peer, *self._size_and_tag(attributes, place), **self._common(node, attributes, place, NO_STREAM)
        )

    def _size_and_tag(self, attributes: Attributes, place: str) -> tuple[int, int]:
        return attributes.integer("comm_size", place), attributes.integer("comm_tag", place, 0)

    def _peer_slot(self, peer: int, place: str) -> int:
        if peer == self._rank or peer >= self._groups.rank_count:
            raise TraceError(
                f"rank {self._rank} and rank {peer} exchange a message",
                place=place,
                valid=f"another of 0 to {self._groups.rank_count - 1}",
            )
        return self._assembler.peer_slot(peer)

    def _add_collective(self, node: Any, attributes: Attributes, place: str) -> None:
        group = self._groups.number(attributes.text("pg_name", place), self._rank, place)
        common = self._common(node, attributes, place, NO_STREAM)
        if own_data.CALL in attributes:
            number: int | None = attributes.integer(own_data.CALL, place)
        else:
            call = call_of(
                attributes.integer("comm_type", place),
                attributes.integer("comm_size", place, 0),
                len(self._job.groups[group].ranks),
                place,
            )
            number = None if call is None else self._job.call_number(call)
        if number is None:
            self._assembler.operations.compute(0, **common)
        else:
            self._assembler.operations.collective(self._assembler.group_slot(group), number, **common)
