"""A P4Runtime server that keeps entities and elects primaries, and nothing else: no packets, no semantics.

It checks what the controller's shell must get right: elections, election ids of writes, order of references,
INSERT against MODIFY. The embedded switch's own server is tested with the controller in `test_embedded.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_code
from google.protobuf import any_pb2

from weft.controller.reconcile import entity_key


class Device:
    """State of one device."""

    def __init__(self) -> None:
        self.entities: dict[Any, p4r.Entity] = {}
        self.config: p4r.ForwardingPipelineConfig | None = None
        self.bids: dict[Any, int] = {}
        self.streams: dict[Any, asyncio.Queue[p4r.StreamMessageResponse]] = {}
        self.highest = 0
        self.writes = 0
        self.packets_out: list[bytes] = []
        self.constants: list[p4r.Entity] = []
        self.packets_of_entry = 0
        self.counters: dict[tuple[int, int], int] = {}

    def primary_id(self) -> int:
        return max(self.bids.values(), default=0)


class P4RuntimeDouble(p4r_grpc.P4RuntimeServicer):
    """Any number of devices; `refused_tables` are table ids whose writes fail."""

    def __init__(self) -> None:
        self.devices: dict[int, Device] = {}
        self.refused_tables: set[int] = set()
        self.pipeline_refusal = ""
        self.server: Any = None

    def device(self, device_id: int) -> Device:
        return self.devices.setdefault(device_id, Device())

    async def Capabilities(self, request: Any, context: Any) -> p4r.CapabilitiesResponse:
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.4.1")

    async def StreamChannel(self, requests: Any, context: Any) -> AsyncIterator[p4r.StreamMessageResponse]:
        outgoing: asyncio.Queue[p4r.StreamMessageResponse] = asyncio.Queue()
        reader = asyncio.create_task(self._take_requests(requests, context, outgoing))
        try:
            while True:
                waiting = asyncio.create_task(outgoing.get())
                await asyncio.wait({waiting, reader}, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    waiting.cancel()
                    refusal = reader.result()
                    if refusal:
                        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, refusal)
                    return
                yield waiting.result()
        finally:
            reader.cancel()
            for device in self.devices.values():
                if device.bids.pop(outgoing, None) is not None:
                    device.streams.pop(outgoing)
                    self._announce(device)

    async def _take_requests(self, requests: Any, context: Any, outgoing: Any) -> str:
        async for request in requests:
            if request.WhichOneof("update") == "packet":
                for device in self.devices.values():
                    if outgoing in device.streams:
                        device.packets_out.append(request.packet.payload)
                continue
            bid = U128.decode(request.arbitration.election_id)
            device = self.device(request.arbitration.device_id)
            if any(other == bid for stream, other in device.bids.items() if stream is not outgoing):
                return f"election id {bid} is already used"
            device.bids[outgoing] = bid
            device.streams[outgoing] = outgoing
            device.highest = max(device.highest, bid)
            self._announce(device)
        return ""

    def _announce(self, device: Device) -> None:
        primary = device.primary_id() if device.primary_id() >= device.highest else 0
        for stream, bid in device.bids.items():
            answer = p4r.MasterArbitrationUpdate(election_id=U128.encode(primary or device.highest))
            code = rpc_code.OK if bid == primary else rpc_code.ALREADY_EXISTS if primary else rpc_code.NOT_FOUND
            answer.status.code = code
            device.streams[stream].put_nowait(p4r.StreamMessageResponse(arbitration=answer))

    def send_packet_in(self, device_id: int, payload: bytes, ingress_port: int) -> None:
        packet = p4r.PacketIn(payload=payload)
        packet.metadata.add(metadata_id=1, value=ingress_port.to_bytes(2, "big").lstrip(b"\0") or b"\0")
        packet.metadata.add(metadata_id=2, value=b"\0")
        for stream in self.device(device_id).streams.values():
            stream.put_nowait(p4r.StreamMessageResponse(packet=packet))

    async def _require_primary(self, request: Any, context: Any) -> Device:
        device = self.device(request.device_id)
        if not device.bids or U128.decode(request.election_id) != device.primary_id():
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not primary")
        return device

    async def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        device = await self._require_primary(request, context)
        if self.pipeline_refusal:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.pipeline_refusal)
        device.config = request.config
        device.entities.clear()
        return p4r.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        device = self.device(request.device_id)
        if device.config is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no forwarding pipeline config")
        return p4r.GetForwardingPipelineConfigResponse(config=device.config)

    async def Write(self, request: Any, context: Any) -> Any:
        device = await self._require_primary(request, context)
        device.writes += len(request.updates)
        failures = [self._write_one(device, update) for update in request.updates]
        if any(failures):
            await self._fail_write(failures, context)
        return p4r.WriteResponse()

    def _write_one(self, device: Device, update: Any) -> tuple[int, str] | None:
        key = entity_key(update.entity)
        entry = update.entity.table_entry if update.entity.HasField("table_entry") else None
        if entry is not None and entry.table_id in self.refused_tables:
            return rpc_code.RESOURCE_EXHAUSTED, "table is full"
        default = entry is not None and entry.is_default_action
        if update.type == p4r.Update.INSERT and (key in device.entities or default):
            return rpc_code.ALREADY_EXISTS, "entity exists"
        if update.type != p4r.Update.INSERT and key not in device.entities and not default:
            return rpc_code.NOT_FOUND, "no such entity"
        missing = self._missing_reference(device, update)
        if missing:
            return rpc_code.INVALID_ARGUMENT, missing
        if update.type == p4r.Update.DELETE:
            del device.entities[key]
        else:
            device.entities[key] = update.entity
        return None

    def _missing_reference(self, device: Device, update: Any) -> str:
        entity = update.entity
        kinds: dict[str | None, dict[int, Any]] = {"action_profile_member": {}, "action_profile_group": {}}
        for stored in device.entities.values():
            kind = stored.WhichOneof("entity")
            if kind == "action_profile_member":
                kinds[kind][stored.action_profile_member.member_id] = stored
            elif kind == "action_profile_group":
                kinds[kind][stored.action_profile_group.group_id] = stored
        if update.type != p4r.Update.DELETE:
            for member in entity.action_profile_group.members:
                if member.member_id not in kinds["action_profile_member"]:
                    return f"no member {member.member_id}"
            action = entity.table_entry.action
            indirect = action.WhichOneof("type") == "action_profile_group_id"
            if indirect and action.action_profile_group_id not in kinds["action_profile_group"]:
                return f"no group {action.action_profile_group_id}"
            return ""
        if entity.HasField("action_profile_member"):
            member_id = entity.action_profile_member.member_id
            for group in kinds["action_profile_group"].values():
                if member_id in [member.member_id for member in group.action_profile_group.members]:
                    return f"member {member_id} is still in use"
        return ""

    async def _fail_write(self, failures: list[tuple[int, str] | None], context: Any) -> None:
        from finsy.proto import rpc_status

        status = rpc_status.Status(code=rpc_code.UNKNOWN, message="write failed")
        for failure in failures:
            error = p4r.Error(canonical_code=failure[0] if failure else rpc_code.OK)
            error.message = failure[1] if failure else ""
            packed = any_pb2.Any()
            packed.Pack(error)
            status.details.append(packed)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        await context.abort(grpc.StatusCode.UNKNOWN, "write failed")

    async def Read(self, request: Any, context: Any) -> AsyncIterator[p4r.ReadResponse]:
        device = self.device(request.device_id)
        reply = p4r.ReadResponse()
        for wanted in request.entities:
            kind = wanted.WhichOneof("entity")
            if kind == "counter_entry":
                reply.entities.extend(self._counters(device, wanted.counter_entry.counter_id))
            for stored in (*device.entities.values(), *device.constants):
                if stored.WhichOneof("entity") == kind and self._matches(stored, wanted):
                    found = reply.entities.add()
                    found.MergeFrom(stored)
                    if wanted.table_entry.HasField("counter_data"):
                        found.table_entry.counter_data.packet_count = device.packets_of_entry
        yield reply

    @staticmethod
    def _matches(stored: Any, wanted: Any) -> bool:
        """Wildcard reads do not return default entries (P4Runtime, section 9.1.6)."""
        table_id = wanted.table_entry.table_id
        engines = (each.packet_replication_engine_entry for each in (stored, wanted))
        if len({each.WhichOneof("type") for each in engines}) > 1:
            return False
        return table_id in (0, stored.table_entry.table_id) and not stored.table_entry.is_default_action

    @staticmethod
    def _counters(device: Device, counter_id: int) -> list[p4r.Entity]:
        entities = []
        for (number, index), packets in device.counters.items():
            if number == counter_id:
                entity = p4r.Entity()
                entity.counter_entry.counter_id = number
                entity.counter_entry.index.index = index
                entity.counter_entry.data.packet_count = packets
                entity.counter_entry.data.byte_count = 100 * packets
                entities.append(entity)
        return entities


async def serve(double: P4RuntimeDouble) -> tuple[Any, str]:
    """Start the server on a free loopback port; return it and its address."""
    server = grpc.aio.server()
    p4r_grpc.add_P4RuntimeServicer_to_server(double, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, f"127.0.0.1:{port}"


def loaded_p4info(device: Device) -> p4i.P4Info | None:
    """P4Info of the loaded pipeline."""
    return device.config.p4info if device.config else None
