"""The controller's shell against a P4Runtime server: elections, pipeline, writes, failures, jobs, packets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest
from finsy.p4entity import encode_entities
from finsy.proto import p4r
from p4info_fixture import fabric_p4info
from p4runtime_double import Device, P4RuntimeDouble, loaded_p4info, serve

import weft.controller.packet_ins
from tests.refusals import refused
from weft.controller.blocking import BlockingFabricController
from weft.controller.errors import (
    JobError,
    NotPrimaryError,
    PipelineError,
    RequestRefusedError,
    SettingError,
    SwitchUnavailableError,
)
from weft.controller.fabric import FabricController
from weft.controller.features import Settings
from weft.controller.features.acl import AclRule, AclSettings
from weft.controller.features.ecn import EcnProfile, EcnSettings
from weft.controller.features.multicast import multicast_group
from weft.controller.grpc_targets import GrpcTarget, embedded_targets, open_channel
from weft.controller.installed import read_installed
from weft.controller.packet_ins import PacketIn
from weft.controller.pipeline import Pipeline
from weft.controller.plan import FabricState, desired_entities
from weft.controller.reconcile import entity_set
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub
from weft.controller.target import BMV2
from weft.topologies import FabricSpec, TopologyError, leaf_spine

PIPELINE = Pipeline(fabric_p4info(), b'{"program": "for the double"}')
FABRIC = leaf_spine(planes=2, leaves=3, spines=2, hosts_per_leaf=2)


def run(test: Callable[[P4RuntimeDouble, str], Awaitable[None]]) -> None:
    async def body() -> None:
        double = P4RuntimeDouble()
        server, address = await serve(double)
        double.server = server
        try:
            await asyncio.wait_for(test(double, address), 60)
        finally:
            await server.stop(None)

    asyncio.run(body())


@asynccontextmanager
async def session(address: str, device_id: int = 1) -> AsyncIterator[SwitchSession]:
    async with open_channel(address) as channel:
        opened = SwitchSession("p0l0", device_id, P4RuntimeStub(channel), PIPELINE, timeout_s=10)
        try:
            yield opened
        finally:
            await opened.close()


def controller(address: str, fabric: FabricSpec = FABRIC, **options: Any) -> FabricController:
    return FabricController(fabric, PIPELINE, embedded_targets(fabric, address), timeout_s=10, **options)


def expected(double: P4RuntimeDouble, state: FabricState | None = None, settings: Settings | None = None) -> None:
    """Every device holds exactly the plan."""
    schema = PIPELINE.schema()
    plan = desired_entities(FABRIC, settings or Settings(), state or FabricState())
    for switch in FABRIC.switches:
        held = entity_set(double.device(switch.device_id).entities.values())
        assert held == entity_set(encode_entities(plan[switch.name], schema)), switch.name


def test_all_switches_get_the_program_and_the_whole_plan() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address):
            assert len(double.devices) == len(FABRIC.switches)
            assert all(loaded_p4info(device) == PIPELINE.p4info for device in double.devices.values())
            expected(double)

    run(body)


def test_a_failed_link_rewrites_little_and_its_repair_restores_the_plan() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            before = {number: device.writes for number, device in double.devices.items()}
            repair = await control.link_down(FABRIC.link_between("p0l0", "p0s0"))
            assert repair.memberships == {}
            expected(double, FabricState(control.failures))
            written = {number: device.writes - before[number] for number, device in double.devices.items()}
            plane_1 = [switch.device_id for switch in FABRIC.switches_of_plane(1)]
            assert all(written[number] == 0 for number in plane_1)
            assert 0 < sum(written.values()) < 40
            await control.link_up(FABRIC.link_between("p0l0", "p0s0"))
            expected(double)
            assert (await control.apply()).entries == 0

    run(body)


def test_jobs_are_programmed_rebuilt_around_failures_and_removed() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            hosts = [host.name for host in FABRIC.hosts]
            memberships = await control.add_job(5, hosts, slot_count=100)
            assert set(memberships) == set(hosts)
            expected(double, FabricState(jobs=control.jobs))
            root = control.jobs[0].trees[0].tree.root.switch
            repair = await control.link_down(FABRIC.link_between("p0l1", root))
            assert repair.lost == {}
            again = repair.memberships[5]["h0"][0]
            assert again.epoch != memberships["h0"][0].epoch
            assert again.q_key != memberships["h0"][0].q_key
            assert control.jobs[0].trees[0].tree.root.switch != root
            expected(double, FabricState(control.failures, control.jobs))
            lost = await control.link_down(FABRIC.link_between("h0", "p0l0"))
            assert "its link to p0l0 is down" in lost.lost[5]
            assert control.jobs == ()
            expected(double, FabricState(control.failures))
            with refused(JobError, valid="there is none", problem="unknown job 5"):
                await control.remove_job(5)

    run(body)


def test_a_refused_write_names_switch_entry_and_reason_and_is_made_good_later() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            table = PIPELINE.schema().tables["aggregation_job"].id
            double.refused_tables = {table}
            with refused(RequestRefusedError, problem="p0l0: INSERT aggregation_job"):
                await control.add_job(1, ["h0", "h1"], slot_count=4, planes=[0])
            assert control.jobs == ()
            double.refused_tables = set()
            await control.apply()
            expected(double)

    run(body)


def test_thresholds_can_be_changed_and_only_they_are_written() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            before = sum(device.writes for device in double.devices.values())
            profiles = {3: EcnProfile(8000, 16000, 1.0)}
            await control.set_ecn(profiles)
            expected(double, settings=Settings(features=(EcnSettings(profiles),)))
            ports = sum(len(switch.ports) for switch in FABRIC.switches)
            assert sum(device.writes for device in double.devices.values()) - before == ports

    run(body)


def test_a_second_controller_is_refused_unless_it_preempts_and_the_first_comes_back() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            async with session(address) as second:
                with refused(NotPrimaryError, problem="p0l0: another controller is"):
                    await second.become_primary()
            async with session(address) as second:
                await second.become_primary(preempt=True)
                await second.write([])
                assert second.is_primary
                await second.close()
            await control.set_ecn({})
            expected(double, settings=Settings(features=(EcnSettings({}),)))

    run(body)


def test_a_reader_takes_part_in_no_election() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control, session(address) as reader:
            await reader.negotiate_version()
            assert len(await read_installed(reader)) > 20
            assert (await reader.read_pipeline()) is not None
            assert len(double.device(1).bids) == 1
            assert control.session("p0l0").is_primary
            (group,) = reader.encode([multicast_group(1, [1])]).values()
            with refused(NotPrimaryError, problem="this session only reads"):
                await reader.write([group.update(p4r.Update.INSERT)])

    run(body)


def test_a_controller_goes_on_where_another_left_off() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address):
            pass
        before = sum(device.writes for device in double.devices.values())
        async with controller(address, push=False):
            expected(double)
            # Default actions are not part of a wildcard read: one MODIFY of `identity` per switch.
            assert sum(device.writes for device in double.devices.values()) - before == len(FABRIC.switches)

    run(body)


def test_a_second_controller_takes_over_while_the_first_lives_and_gives_back() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as first:
            with refused(NotPrimaryError, problem="another controller is primary"):
                async with controller(address, push=False):
                    pass
            async with controller(address, push=False, preempt=True) as second:
                assert second.session("p0l0").is_primary
                await second.link_down(FABRIC.link_between("p0l0", "p0s0"))
                expected(double, FabricState(second.failures))
                assert not first.session("p0l0").is_primary
                await second.link_up(FABRIC.link_between("p0l0", "p0s0"))
            await first.link_down(FABRIC.link_between("p0l1", "p0s1"))
            expected(double, FabricState(first.failures))
            assert first.session("p0l0").is_primary

    run(body)


def test_packets_go_both_ways() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            double.send_packet_in(2, b"frame", 3)
            packet = await anext(control.packet_ins())
            assert packet == PacketIn(FABRIC.device(2).name, 3, b"frame")
            await control.packet_out("p0l1", 1, b"answer")
            while not double.device(2).packets_out:
                await asyncio.sleep(0)
            assert double.device(2).packets_out == [b"answer"]
            with refused(TopologyError, valid="1 to 4", problem="no port 99"):
                await control.packet_out("p0l1", 99, b"")

    run(body)


def test_packets_beyond_those_that_wait_are_counted_by_switch_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weft.controller.packet_ins, "PACKET_QUEUE_LENGTH", 2)
    monkeypatch.setattr(weft.controller.packet_ins, "REPORT_INTERVAL_S", 0.0)
    reports: list[Mapping[str, int]] = []

    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address, on_dropped=reports.append) as control:
            for sent, number in enumerate((1, 1, 2, 1, 1, 2), start=1):
                double.send_packet_in(number, b"frame", 3)
                while control._packet_ins.waiting + control.dropped_packet_ins.total() < sent:
                    await asyncio.sleep(0)
            assert control.dropped_packet_ins == {"p0l0": 2, "p0l1": 2}
            while reports[-1:] != [{"p0l0": 2, "p0l1": 2}]:
                await asyncio.sleep(0)
            packet = await anext(control.packet_ins())
            assert (packet.switch, packet.payload) == ("p0l0", b"frame")

    run(body)


def test_what_was_dropped_last_is_reported_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weft.controller.packet_ins, "PACKET_QUEUE_LENGTH", 1)
    monkeypatch.setattr(weft.controller.packet_ins, "REPORT_INTERVAL_S", 3600.0)
    reports: list[Mapping[str, int]] = []

    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address, on_dropped=reports.append) as control:
            for _ in range(4):
                double.send_packet_in(2, b"frame", 3)
            while control.dropped_packet_ins.total() < 3:
                await asyncio.sleep(0)
            assert reports == []

    run(body)
    assert reports == [{"p0l1": 3}]


def test_a_refused_program_says_why() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        double.pipeline_refusal = "bad JSON at $.parsers[0]"
        with refused(RequestRefusedError, problem="SetForwardingPipelineConfig"):
            async with controller(address):
                pass

    run(body)


def test_an_absent_server_is_named() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        with refused(SwitchUnavailableError, problem="p0l0: Capabilities: no answer"):
            async with controller("127.0.0.1:1"):
                pass

    run(body)


def test_targets_must_cover_the_fabric() -> None:
    with refused(SettingError, problem="no P4Runtime address for p0l0"):
        FabricController(FABRIC, PIPELINE, {})


def test_what_the_program_has_no_table_for_is_left_out() -> None:
    info = fabric_p4info()
    table = next(table for table in info.tables if table.preamble.alias == "int_port")
    table.preamble.name = table.preamble.alias = "other_table"

    async def body(double: P4RuntimeDouble, address: str) -> None:
        control = FabricController(FABRIC, Pipeline(info, b"{}"), embedded_targets(FABRIC, address), timeout_s=10)
        async with control:
            assert control.left_out == {switch.name: {"int_port": "no table int_port"} for switch in FABRIC.switches}

    run(body)


def test_an_access_list_is_put_in_force_and_taken_away() -> None:
    rules = [
        AclRule(10, "punt", ether_type=0x0806),
        AclRule(20, "deny", source=ip_network("10.0.1.0/24"), protocol=17, destination_port=4791),
    ]

    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            await control.set_acl(rules)
            expected(double, settings=Settings(features=(AclSettings(tuple(rules)),)))
            masks = {
                field.ternary.mask
                for entity in double.device(1).entities.values()
                for field in entity.table_entry.match
            }
            assert b"\xff" * 15 + b"\0" in masks
            await control.set_acl([])
            expected(double)

    run(body)
    with refused(SettingError, valid="permit, deny, punt", problem="unknown access list action"):
        AclRule(1, "drop")  # type: ignore[arg-type]
    with refused(SettingError, valid="1 or more", problem="priority 0 is out of range"):
        AclRule(0, "deny")


def test_a_restarted_switch_is_filled_again_and_meanwhile_routed_around() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            spine = FABRIC.switch("p0s1")
            await control.switch_down("p0s1")
            groups = [key for key in double.device(1).entities if key[0] == "action_profile_group"]
            assert groups == []
            double.devices[spine.device_id] = Device()
            await control.switch_up("p0s1")
            expected(double)
            assert control.lost_switches == ()

    run(body)


def test_another_program_is_not_taken_over() -> None:
    other = fabric_p4info()
    other.pkg_info.version = "2"

    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with FabricController(FABRIC, Pipeline(other, b"{}"), embedded_targets(FABRIC, address)):
            pass
        with refused(PipelineError, place="p0l0", problem="runs a program with another"):
            async with controller(address, push=False):
                pass

    run(body)


def test_a_malformed_packet_in_and_a_lost_server_are_noticed() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        async with controller(address) as control:
            stream = next(iter(double.device(1).streams.values()))
            bad = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=b"x"))
            stream.put_nowait(bad)
            double.send_packet_in(1, b"good", 2)
            assert (await anext(control.packet_ins())).payload == b"good"
            assert control.session("p0l0").stream_errors == 1
            await double.server.stop(None)
            await asyncio.gather(*(control.session(s.name).wait_lost() for s in FABRIC.switches))
            assert control.lost_switches == tuple(switch.name for switch in FABRIC.switches)
            with refused(SwitchUnavailableError, place="p0l0", problem="the stream has ended"):
                await control.set_ecn({})

    run(body)


def test_blocking_controller_does_the_same_from_a_thread() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        def use() -> int:
            targets = embedded_targets(FABRIC, address)
            with BlockingFabricController(FabricController(FABRIC, PIPELINE, targets, timeout_s=10)) as control:
                control.configure(EcnSettings({}))
                return control.add_job(2, ["h0", "h5"], slot_count=8)["h5"][1].worker_index

        assert await asyncio.to_thread(use) == 1
        assert any(key[0] == "packet_replication_engine_entry" for key in double.device(1).entities)

    run(body)


def test_one_server_per_switch_as_with_bmv2() -> None:
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1)

    async def body() -> None:
        doubles = {switch.name: P4RuntimeDouble() for switch in fabric.switches}
        servers = {name: await serve(double) for name, double in doubles.items()}
        targets = {switch.name: GrpcTarget(servers[switch.name][1], switch.device_id) for switch in fabric.switches}
        settings = Settings(target=BMV2)
        async with FabricController(fabric, PIPELINE, targets, settings, timeout_s=10) as control:
            await control.add_job(1, ["h0", "h1"], slot_count=1)
            schema = PIPELINE.schema()
            plan = desired_entities(fabric, settings, FabricState(jobs=control.jobs))
            for switch in fabric.switches:
                assert list(doubles[switch.name].devices) == [switch.device_id]
                held = entity_set(doubles[switch.name].device(switch.device_id).entities.values())
                assert held == entity_set(encode_entities(plan[switch.name], schema))
        for server, _ in servers.values():
            await server.stop(None)

    asyncio.run(asyncio.wait_for(body(), 60))


def test_an_interrupted_call_is_cancelled_and_leaves_nothing_behind() -> None:
    async def body(double: P4RuntimeDouble, address: str) -> None:
        def use() -> list[str]:
            ended: list[str] = []

            async def endless() -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append("cancelled")

            async def start(work: Coroutine[Any, Any, None]) -> None:
                tasks.append(asyncio.create_task(work))
                await asyncio.sleep(0)

            tasks: list[asyncio.Task[None]] = []
            targets = embedded_targets(FABRIC, address)
            with BlockingFabricController(FabricController(FABRIC, PIPELINE, targets, timeout_s=10)) as control:
                control.call(start(endless()))
            return ended

        assert await asyncio.to_thread(use) == ["cancelled"]

    run(body)
