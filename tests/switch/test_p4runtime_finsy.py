"""finsy, unmodified, as the controller: several switches at once, entries, packets and digests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import finsy as fy
import pytest
from google.protobuf import text_format
from router_program import router_document, router_p4info
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from weft.switch.p4runtime.service import Server


@pytest.fixture
def options(tmp_path: Path) -> fy.SwitchOptions:
    info, program = tmp_path / "router.p4info.txtpb", tmp_path / "router.json"
    info.write_text(text_format.MessageToString(router_p4info()))
    program.write_bytes(router_document())
    return fy.SwitchOptions(p4info=info, p4blob=program)


async def _program(switch: fy.Switch) -> None:
    async with switch:
        await switch.delete_all()
        await switch.write(
            [
                +fy.P4TableEntry(
                    "routes",
                    match=fy.Match(**{"ipv4.dst": "10.0.0.0/8"}),
                    action=fy.Action("route", port=510, mac="02:00:00:00:00:05"),
                ),
                +fy.P4TableEntry(
                    "acl",
                    match=fy.Match(**{"ipv4.src": "10.1.0.0/&255.255.0.0", "ipv4.protocol": 6}),
                    action=fy.Action("deny"),
                    priority=10,
                ),
                +fy.P4TableEntry(
                    "ecmp",
                    match=fy.Match(**{"ipv4.dst": "10.9.9.9"}),
                    action=fy.P4IndirectAction(action_set=[(1, fy.Action("set_port", port=3))]),
                ),
                +fy.P4MulticastGroupEntry(4, replicas=[1, 2]),
                +fy.P4CloneSessionEntry(5, replicas=[510]),
                ~fy.P4RegisterEntry("register", index=3, data=9),
                +fy.P4DigestEntry("digest_t", max_list_size=1),
            ]
        )
        entries = [entry async for entry in switch.read(fy.P4TableEntry())]
        assert {entry.table_id for entry in entries} == {"routes", "acl", "ecmp"}
        registers = [entry async for entry in switch.read(fy.P4RegisterEntry("register", index=3))]
        assert [entry.data for entry in registers] == [9]
        packet = bytes(Ether() / IP(src="10.2.0.1", dst="10.0.0.9", ttl=5) / UDP())
        arrival = asyncio.ensure_future(anext(switch.read_packets()))
        await asyncio.sleep(0)  # lets it start to listen
        await switch.write(fy.P4PacketOut(packet, egress_port=510, reserved=0))
        received = await arrival
        assert received["ingress_port"] == 510
        assert received.payload == packet
        with pytest.raises(fy.P4ClientError, match="ALREADY_EXISTS"):
            await switch.write([+fy.P4MulticastGroupEntry(4, replicas=[1])])
        await switch.delete_all()
        assert [entry async for entry in switch.read(fy.P4TableEntry())] == []


@pytest.mark.timeout(60)
def test_finsy_programs_two_switches_at_once(server: Server, options: fy.SwitchOptions) -> None:
    async def run() -> None:
        switches = [fy.Switch(f"sw{n}", server.address, options(device_id=n)) for n in (1, 2)]
        await asyncio.gather(*(_program(switch) for switch in switches))

    asyncio.run(run())
