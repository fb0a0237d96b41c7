"""A controller over P4Runtime: sets the pipeline of device 0 and writes one route a host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc
from google.protobuf import text_format


def write_routes(address: str, p4info: Path, document: Path, routes: dict[str, int], *, wrapped: bool = False) -> None:
    """`routes` maps a host's address to its port; its MAC is 02:00:00:00:00:PORT.

    `wrapped`: the program goes in PI's P4DeviceConfig, as the tutorials' controllers send it.
    """
    info = text_format.Parse(p4info.read_text(), p4i.P4Info())
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        election = U128.encode(1)
        done = threading.Event()

        def requests() -> Iterator[p4r.StreamMessageRequest]:
            arbitration = p4r.MasterArbitrationUpdate(device_id=0, election_id=election)
            yield p4r.StreamMessageRequest(arbitration=arbitration)
            done.wait()

        stream = stub.StreamChannel(requests())
        if next(stream).arbitration.status.code:
            raise SystemExit("another controller is primary")
        config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=_p4_device_config(document, wrapped))
        commit = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(device_id=0, election_id=election, action=commit, config=config)
        )
        updates = [_route(info, host, port) for host, port in routes.items()]
        stub.Write(p4r.WriteRequest(device_id=0, election_id=election, updates=updates))
        done.set()


def _p4_device_config(document: Path, wrapped: bool) -> bytes:
    data = document.read_bytes()
    if not wrapped:
        return data
    # P4DeviceConfig: reassign (1) is true; device_data (3) has its length before it, seven bits a byte.
    length = [len(data) >> shift & 0x7F for shift in range(0, max(1, len(data).bit_length()), 7)]
    return b"\x08\x01\x1a" + bytes([*(part | 0x80 for part in length[:-1]), length[-1]]) + data


def _route(info: p4i.P4Info, host: str, port: int) -> p4r.Update:
    table = next(table for table in info.tables if table.preamble.name == "MyIngress.ipv4_lpm")
    action = next(item for item in info.actions if item.preamble.name == "MyIngress.ipv4_forward")
    entry = p4r.TableEntry(table_id=table.preamble.id)
    match = entry.match.add(field_id=1)
    match.lpm.value = bytes(map(int, host.split(".")))
    match.lpm.prefix_len = 32
    entry.action.action.action_id = action.preamble.id
    entry.action.action.params.add(param_id=1, value=bytes([2, 0, 0, 0, 0, port]))
    entry.action.action.params.add(param_id=2, value=bytes([port]))
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))
