"""P4Runtime session with one switch: arbitration, pipeline, batched writes, reads, packets.

The session calls a stub of the P4Runtime service, so anything that offers the same calls can serve it. It uses finsy's
entities and schema, but not finsy's `Switch`, which hides why a pipeline was rejected and times out after ten seconds;
loading a pipeline on a busy machine can take longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import grpc
from finsy import P4DigestList, P4PacketIn, P4PacketOut
from finsy.p4entity import P4IdleTimeoutNotification, decode_entity, decode_stream, encode_entities
from finsy.p4schema import P4RuntimeVersion, P4Schema
from finsy.proto import U128, p4r, rpc_code

from weft.controller.entities import Cell, Entity
from weft.controller.errors import NotPrimaryError, RequestRefusedError, SwitchUnavailableError
from weft.controller.pipeline import Pipeline
from weft.controller.reconcile import EncodedEntity, EncodedUpdate, EntitySet
from weft.controller.refusals import explain
from weft.controller.stub import SharedRequest
from weft.errors import translated

BATCH_UPDATES = 1000
# Not 1: clients that only read, such as p4runtime-shell, must also bid, and need ids below the controller's.
FIRST_ELECTION_ID = 1 << 16
_MAX_PREEMPTIONS = 16
# Loading a program may take this many times the timeout of other calls, while the switch answers them.
_LOADING_PATIENCE = 30
# Longest wait for a switch to notice that its controller is leaving; the session then ends anyway.
_LEAVING_PATIENCE_S = 5.0
_ELECTION_ID = re.compile("election.?id", re.IGNORECASE)


StreamEvent: TypeAlias = P4PacketIn | P4DigestList | P4IdleTimeoutNotification


class SwitchSession:
    """A P4Runtime client of one device.

    Without `become_primary` it can only read, which needs no election and does not disturb controllers.

    Args:
        name: name of the switch, for messages.
        device_id: P4Runtime device id.
        stub: stub of the P4Runtime service on an asyncio channel (`stub.P4RuntimeStub`).
        pipeline: its P4Info encodes entities.
        timeout_s: timeout of each call; loading a program may take longer (`push_pipeline`).
        on_packet: called with every packet-in.
        role: role for which the session bids; roles elect their primaries separately (P4Runtime, section 5.2). A named
            role has full access, next to the primary of the role without a name.

    Attributes:
        written: set it to a list to record all updates that the switch accepted.
        on_event: called with every decoded packet-in, digest list and idle timeout.

    """

    def __init__(
        self,
        name: str,
        device_id: int,
        stub: Any,
        pipeline: Pipeline,
        timeout_s: float = 60.0,
        on_packet: Callable[[P4PacketIn], None] | None = None,
        on_event: Callable[[StreamEvent], None] | None = None,
        role: str = "",
    ) -> None:
        self.name = name
        self.device_id = device_id
        self.stream_errors = 0
        self.written: list[EncodedUpdate] | None = None
        self._stub = stub
        self.pipeline = pipeline
        self._encoder = pipeline.encoder()
        self._timeout_s = timeout_s
        self._role = role
        self._on_packet = on_packet
        self._on_event = on_event
        self._stream: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._election_id = 0
        self._highest_election_id = 0
        self._primary = asyncio.Event()
        self._decided = asyncio.Event()
        self._stream_failure: grpc.aio.AioRpcError | None = None

    @property
    def schema(self) -> P4Schema:
        """The schema of P4Info for the switch's P4Runtime version; shared with other sessions."""
        return self._encoder.schema

    def has_table(self, name: str) -> bool:
        """Return whether the switch's program has a table with this name."""
        return name in self.pipeline.names.tables

    def counts(self, table: str) -> bool:
        """Return whether the switch's program has this table with a direct counter."""
        return self.has_table(table) and self.schema.tables[table].direct_counter is not None

    @property
    def is_lost(self) -> bool:
        """Whether the switch's side ended the stream, as when the switch ended."""
        return self._reader is not None and self._reader.done()

    @property
    def is_primary(self) -> bool:
        """Whether this session is primary, so that the switch accepts its writes."""
        return self._primary.is_set()

    async def negotiate_version(self) -> P4RuntimeVersion:
        """Ask for the server's P4Runtime version and encode entities accordingly from then on."""
        with translated(grpc.aio.AioRpcError, explain, self.name, "Capabilities"):
            version = await self._api_version()
        if version is not None:
            self._encoder = self.pipeline.encoder(P4RuntimeVersion.parse(version))
        return self.schema.p4runtime_version

    async def _api_version(self) -> str | None:
        """Return the server's version; None if it does not implement the call. Raises AioRpcError."""
        try:
            reply = await self._stub.Capabilities(p4r.CapabilitiesRequest(), timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise
        return str(reply.p4runtime_api_version)

    async def become_primary(self, election_id: int = FIRST_ELECTION_ID, preempt: bool = False) -> None:
        """Open the stream and win the election (P4Runtime, section 5).

        Args:
            election_id: election id of the first bid.
            preempt: outbid another controller, which becomes primary again when this session ends.

        Raises:
            NotPrimaryError: another controller is primary and `preempt` is false.
            SwitchUnavailableError: the switch does not answer.

        """
        for _ in range(_MAX_PREEMPTIONS):
            await self._bid(election_id)
            if self.is_primary:
                return
            if not preempt:
                break
            # Another controller may bid higher at the same moment, so more than one attempt may be needed.
            election_id = max(election_id, self._highest_election_id) + 1
        other = f" with election id {self._highest_election_id}" if self._highest_election_id else ""
        await self.close()
        raise NotPrimaryError(f"{self.name}: another controller is primary{other}")

    async def push_pipeline(self) -> None:
        """Load the program; the switch discards all entries and registers (VERIFY_AND_COMMIT).

        A switch that answers other calls is working, not hung, so it gets 30 times their timeout.

        Raises:
            SwitchUnavailableError: it does not answer, or takes longer. RequestRefusedError: it rejects the program.

        """
        head = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=U128.encode(self._election_id),
            role=self._role,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        # All switches get a program of a megabyte at the same time, so requests share its bytes.
        request = SharedRequest(head.SerializeToString(), self._encoder.pipeline_config_field)
        with translated(grpc.aio.AioRpcError, explain, self.name, "SetForwardingPipelineConfig"):
            await self._while_it_answers(
                self._stub.SetForwardingPipelineConfig(request, timeout=_LOADING_PATIENCE * self._timeout_s)
            )

    async def reload_program(self) -> None:
        """Load the switch's own program again; the switch discards all entries and registers.

        Raises:
            RequestRefusedError: no program is loaded. SwitchUnavailableError: the switch does not answer.

        """
        config = await self._read_config(p4r.GetForwardingPipelineConfigRequest.ALL)
        if config is None:
            raise RequestRefusedError("no program is loaded", place=self.name)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=U128.encode(self._election_id),
            role=self._role,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=config,
        )
        with translated(grpc.aio.AioRpcError, explain, self.name, "SetForwardingPipelineConfig"):
            await self._while_it_answers(
                self._stub.SetForwardingPipelineConfig(
                    request.SerializeToString(), timeout=_LOADING_PATIENCE * self._timeout_s
                )
            )

    async def _while_it_answers(self, call: Awaitable[Any]) -> None:
        """Wait for a call to end as long as the switch answers other calls meanwhile. Raises AioRpcError."""
        ending = asyncio.ensure_future(call)
        try:
            # A machine may need minutes to compile a program for all its switches; one that answers other calls is not
            # hung.
            while not (await asyncio.wait([ending], timeout=self._timeout_s))[0]:
                await self._api_version()
            await ending
        finally:
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)

    async def read_pipeline(self) -> p4r.ForwardingPipelineConfig | None:
        """Return P4Info and cookie of the loaded program; None if no program is loaded."""
        config = await self._read_config(p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE)
        return config if config is not None and config.HasField("p4info") else None

    async def read_device_config(self) -> bytes:
        """Return the loaded program as BMv2 JSON; empty if no program is loaded."""
        config = await self._read_config(p4r.GetForwardingPipelineConfigRequest.DEVICE_CONFIG_AND_COOKIE)
        return b"" if config is None else config.p4_device_config

    async def _read_config(
        self, wanted: p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType
    ) -> p4r.ForwardingPipelineConfig | None:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=wanted)
        try:
            reply = await self._stub.GetForwardingPipelineConfig(request, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
                return None
            raise explain(self.name, "GetForwardingPipelineConfig", error) from None
        config: p4r.ForwardingPipelineConfig = reply.config
        return config

    async def write(self, updates: Sequence[EncodedUpdate]) -> None:
        """Send updates in order, in batches.

        Raises:
            RequestRefusedError: names the first update that the switch rejected; later batches are not sent.
            NotPrimaryError: another controller became primary.

        """
        for start in range(0, len(updates), BATCH_UPDATES):
            await self._wait_until_primary()
            batch = updates[start : start + BATCH_UPDATES]
            head = p4r.WriteRequest(
                device_id=self.device_id, role=self._role, election_id=U128.encode(self._election_id)
            )
            # Concatenated from bytes: protobuf fields may come in any order, and most switches' updates are encoded
            # already.
            request = b"".join((head.SerializeToString(), *(update.field for update in batch)))
            try:
                await self._stub.Write(request, timeout=self._timeout_s)
                if self.written is not None:
                    self.written += batch
            except grpc.aio.AioRpcError as error:
                raise explain(self.name, "Write", error, batch, self.schema) from None

    async def write_cells(self, cells: Iterable[Cell]) -> None:
        """Set value sets and cells of registers, meters and counters. Raises as `write`."""
        with translated(ValueError, RequestRefusedError, place=self.name):
            encoded = [EncodedEntity.plain(each.encode(self.schema)) for each in cells]
        await self.write([each.update(p4r.Update.MODIFY) for each in encoded])

    async def read_raw(self, wanted: Iterable[p4r.Entity]) -> list[p4r.Entity]:
        """Read entities as protobuf; unset fields are wildcards."""
        return await self.read_encoded(p4r.ReadRequest(entities=list(wanted)).SerializeToString())

    async def read_encoded(self, queries: bytes) -> list[p4r.Entity]:
        """Read entities, given the queries as encoded fields of a `p4.v1.ReadRequest`, which sessions may share."""
        request = SharedRequest(p4r.ReadRequest(device_id=self.device_id).SerializeToString(), queries)
        entities: list[p4r.Entity] = []
        with translated(grpc.aio.AioRpcError, explain, self.name, "Read"):
            async for reply in self._stub.Read(request, timeout=self._timeout_s):
                entities.extend(reply.entities)
        return entities

    async def read(self, wanted: Iterable[Any]) -> list[Any]:
        """Read entities, given and returned as finsy's.

        Raises:
            RequestRefusedError: the switch rejected the request, or P4Info lacks a requested object.

        """
        with translated(ValueError, RequestRefusedError, place=self.name):
            request = encode_entities(wanted, self.schema)
            entities = await self.read_raw(request)
            return [decode_entity(entity, self.schema) for entity in entities]

    def encode(self, entities: Iterable[Entity]) -> EntitySet:
        """Encode entities with the switch's P4Info; switches share equal encoded entities.

        Entities without a table, action or field in the program are skipped (`Pipeline.left_out`).

        Raises:
            RequestRefusedError: a value does not fit its field.

        """
        try:
            return self._encoder.entity_set(entities)
        except ValueError as error:
            raise RequestRefusedError(f"the program does not fit the controller: {error}", place=self.name) from None

    async def send_packet(self, payload: bytes, **metadata: int) -> None:
        """Send a packet-out with the program's packet_out header, or without one if the program has none."""
        await self._wait_until_primary()
        message = (
            P4PacketOut(payload, **metadata).encode_update(self.schema)
            if self.schema.controller_packet_metadata.get("packet_out") is not None
            else p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=payload))
        )
        await self._stream.write(message)

    async def acknowledge(self, digests: P4DigestList) -> None:
        """Acknowledge a list of digests to the switch (P4Runtime, section 9.7)."""
        await self._stream.write(digests.ack().encode_update(self.schema))

    async def wait_lost(self) -> None:
        """Wait until the switch's side has ended the stream."""
        if self._reader is not None:
            await asyncio.wait({self._reader})

    async def close(self) -> None:
        """End the stream and wait until the switch has noticed, so that another controller can become primary."""
        if self._stream is not None and self._reader is not None and not self._reader.done():
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self._stream.done_writing()
                await asyncio.wait([self._reader], timeout=_LEAVING_PATIENCE_S)
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
            self._reader = None
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None
        self._primary.clear()

    async def _bid(self, election_id: int) -> None:
        """Send a bid and wait until the switch has answered it."""
        self._election_id = election_id
        self._decided.clear()
        self._stream_failure = None
        try:
            if self._stream is None or self._reader is None or self._reader.done():
                self._stream = self._stub.StreamChannel()
                self._reader = asyncio.create_task(self._receive(self._stream), name=f"{self.name} stream")
            await self._send_bid()
            await asyncio.wait_for(self._decided.wait(), self._timeout_s)
        except TimeoutError:
            raise SwitchUnavailableError(f"arbitration: no answer in {self._timeout_s:g} s", place=self.name) from None
        except grpc.aio.AioRpcError as error:
            self._stream_failure = error
        except asyncio.InvalidStateError:
            await self._decided.wait()  # the stream ended while the bid was sent; its reader has the reason
        failure = self._stream_failure
        if failure is not None and not _says_election_id_taken(failure):
            raise explain(self.name, "arbitration", failure) from None

    async def _send_bid(self) -> None:
        bid = p4r.MasterArbitrationUpdate(device_id=self.device_id, election_id=U128.encode(self._election_id))
        if self._role:
            bid.role.name = self._role
        await self._stream.write(p4r.StreamMessageRequest(arbitration=bid))

    async def _receive(self, stream: Any) -> None:
        try:
            while (message := await stream.read()) is not grpc.aio.EOF:
                await self._dispatch(message)
            # The server ended the call; reading its status raises unless it is OK.
            if await stream.code() is not grpc.StatusCode.OK:
                raise grpc.aio.AioRpcError(
                    await stream.code(),
                    await stream.initial_metadata(),
                    await stream.trailing_metadata(),
                    details=await stream.details(),
                )
        except grpc.aio.AioRpcError as error:
            self._stream_failure = error
        finally:
            self._primary.clear()
            self._decided.set()

    async def _dispatch(self, message: p4r.StreamMessageResponse) -> None:
        kind = message.WhichOneof("update")
        if kind == "arbitration":
            await self._on_arbitration(message.arbitration)
        elif kind in ("packet", "digest", "idle_timeout_notification"):
            try:
                event: StreamEvent = decode_stream(message, self.schema)
                if self._on_event is not None:
                    self._on_event(event)
                if self._on_packet is not None and isinstance(event, P4PacketIn):
                    self._on_packet(event)
            except (ValueError, KeyError):  # the packet_in header differs from P4Info's
                self.stream_errors += 1
        elif kind == "error":
            self.stream_errors += 1

    async def _on_arbitration(self, answer: p4r.MasterArbitrationUpdate) -> None:
        self._highest_election_id = U128.decode(answer.election_id)
        if answer.status.code == rpc_code.OK:
            self._primary.set()
        else:
            self._primary.clear()
            if answer.status.code == rpc_code.NOT_FOUND:
                # The primary has left: the next to bid at least the highest id seen becomes primary.
                self._election_id = max(self._election_id, self._highest_election_id)
                await self._send_bid()
                return
        self._decided.set()

    async def _wait_until_primary(self) -> None:
        if self._reader is None:
            raise NotPrimaryError(f"{self.name}: this session only reads")
        if self.is_lost:
            reason = self._stream_failure.details() if self._stream_failure else "the switch closed it"
            raise SwitchUnavailableError(f"the stream has ended: {reason}", place=self.name)
        try:
            await asyncio.wait_for(self._primary.wait(), self._timeout_s)
        except TimeoutError:
            raise NotPrimaryError(
                f"{self.name}: another controller is primary (election id {self._highest_election_id})"
            ) from None


def _says_election_id_taken(error: grpc.aio.AioRpcError) -> bool:
    """Return whether a bid failed because another controller uses its election id.

    The switch then ends the stream with INVALID_ARGUMENT (P4Runtime, section 5.3).
    """
    is_refused = error.code() is grpc.StatusCode.INVALID_ARGUMENT
    return is_refused and _ELECTION_ID.search(error.details() or "") is not None
