"""Writes a job as Chakra for ASTRA-sim, with extra attributes from which Weft reads back the same job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.jobs.traces.chakra import own_data
from weft.jobs.traces.chakra.collectives import type_and_input_bytes
from weft.jobs.traces.chakra.framing import framed
from weft.jobs.traces.chakra.messages import Attribute, GlobalMetadata, Node, NodeType
from weft.jobs.traces.chakra.reading import ACCELERATOR_STREAM, PROCESSOR_STREAM
from weft.quantities.units import PS_PER_US
from weft.traffic.jobs import NO_STREAM, Job, Kind, RankPart

VERSION = "1.0.0"
_TYPES = {
    Kind.COMPUTE: NodeType.COMPUTE,
    Kind.TIMER: NodeType.COMPUTE,
    Kind.SEND: NodeType.SEND,
    Kind.RECEIVE: NodeType.RECEIVE,
    Kind.COLLECTIVE: NodeType.COLLECTIVE,
}


def group_name(number: int) -> str:
    """Return the name of a process group in Chakra. ASTRA-sim requires numbers; 0 is its group of all ranks."""
    return str(number + 1)


def messages_of(job: Job, rank: int) -> Iterator[bytes]:
    """Yield the framed messages of a rank's file."""
    part = job.parts[rank]
    data = own_data.RankData(
        peers=list(part.peers),
        groups=list(part.groups),
        compute_scale=part.compute_scale,
        communication_share=part.communication_share,
        job=_job_data(job) if rank == 0 else None,
    )
    metadata = GlobalMetadata(version=VERSION)
    metadata.attr.append(Attribute(name=own_data.FILE_ATTRIBUTE, string_val=data.model_dump_json()))
    yield framed(metadata.SerializeToString(deterministic=True))
    for operation in range(len(part.operations)):
        yield framed(_node(job, rank, part, operation).SerializeToString(deterministic=True))


def _job_data(job: Job) -> own_data.JobData:
    return own_data.JobData(
        name=job.name,
        group_names=[group.name for group in job.groups],
        calls=[own_data.CallData.of(call) for call in job.calls],
        traffic_classes=job.traffic_classes,
    )


def _node(job: Job, rank: int, part: RankPart, operation: int) -> Any:
    operations = part.operations
    kind = Kind(operations.kind[operation])
    node = Node(id=operation, type=_TYPES[kind], name=operations.names[operations.name[operation]])
    attributes = _ATTRIBUTES[kind](job, rank, part, operation)
    stream = int(operations.stream[operation])
    if kind == Kind.COMPUTE:
        attributes["is_cpu_op"] = stream == PROCESSOR_STREAM
    if stream != _stream_read(kind, stream):
        attributes[own_data.STREAM] = stream + 1
    if category := operations.categories[operations.category[operation]]:
        attributes[own_data.CATEGORY] = category
    duration_ps = int(operations.duration_ps[operation])
    if duration_ps:
        node.duration_micros = round(duration_ps * part.compute_scale / PS_PER_US)
        attributes[own_data.DURATION] = duration_ps
    _add_dependencies(node, part, operation)
    for name, value in attributes.items():
        node.attr.append(_attribute(name, value))
    return node


def _stream_read(kind: Kind, stream: int) -> int:
    """Return the stream that a reader assumes for an operation without a stream attribute."""
    if kind != Kind.COMPUTE:
        return NO_STREAM
    return PROCESSOR_STREAM if stream == PROCESSOR_STREAM else ACCELERATOR_STREAM


def _attribute(name: str, value: bool | int | str) -> Any:
    if isinstance(value, bool):
        return Attribute(name=name, bool_val=value)
    if isinstance(value, str):
        return Attribute(name=name, string_val=value)
    # ASTRA-sim's older readers accept only one type of each.
    if name in ("comm_src", "comm_dst", "comm_tag") and value < 1 << 31:
        return Attribute(name=name, int32_val=value)
    return Attribute(name=name, int64_val=value)


def _add_dependencies(node: Any, part: RankPart, operation: int) -> None:
    operations = part.operations
    begin, end = operations.after_offsets[operation], operations.after_offsets[operation + 1]
    after, on_start = operations.after[begin:end], operations.after_start[begin:end]
    done = after[~on_start].tolist()
    if on_start.any():
        started = after[on_start].tolist()
        for name, numbers in ((own_data.AFTER, done), (own_data.AFTER_START, started)):
            attribute = Attribute(name=name)
            attribute.uint64_list.SetInParent()
            attribute.uint64_list.values.extend(numbers)
            node.attr.append(attribute)
        # For other readers: wait for the dependencies of an operation in place of its start.
        earlier = {int(each) for other in started for each in operations.predecessors(other)}
        done += sorted(earlier - set(done) - {operation})
    node.data_deps.extend(done)


def _nothing(_job: Job, _rank: int, _part: RankPart, _operation: int) -> dict[str, Any]:
    return {}


def _timer(_job: Job, _rank: int, _part: RankPart, _operation: int) -> dict[str, Any]:
    return {"is_cpu_op": True, own_data.TIMER: True}


def _transfer(_job: Job, rank: int, part: RankPart, operation: int) -> dict[str, Any]:
    operations = part.operations
    peer = part.peers[operations.target[operation]]
    source, destination = (rank, peer) if operations.kind[operation] == Kind.SEND else (peer, rank)
    return {
        "is_cpu_op": False,
        "comm_size": int(operations.size_bytes[operation]),
        "comm_src": source,
        "comm_dst": destination,
        "comm_tag": int(operations.tag[operation]),
    }


def _collective(job: Job, _rank: int, part: RankPart, operation: int) -> dict[str, Any]:
    slot, number = part.operations.calls[part.operations.target[operation]]
    group = part.groups[slot]
    kind, input_bytes = type_and_input_bytes(job.calls[number], len(job.groups[group].ranks))
    return {
        "is_cpu_op": False,
        "comm_type": int(kind),
        "comm_size": input_bytes,
        "pg_name": group_name(group),
        own_data.CALL: number,
    }


_ATTRIBUTES = {
    Kind.COMPUTE: _nothing,
    Kind.TIMER: _timer,
    Kind.SEND: _transfer,
    Kind.RECEIVE: _transfer,
    Kind.COLLECTIVE: _collective,
}
