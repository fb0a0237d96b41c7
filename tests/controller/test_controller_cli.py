"""The command line against a running (imitated) lab: output, JSON, exit codes, and no disturbance."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result
from finsy.p4entity import encode_entities
from google.protobuf import text_format
from p4info_fixture import fabric_p4info
from p4runtime_double import P4RuntimeDouble, serve

from tests.refusals import refused
from weft.clocks.ev_control import EvControl
from weft.clocks.real.operations_server import OperationsServer
from weft.controller.blocking import BlockingFabricController
from weft.controller.cli import controller as command
from weft.controller.elements import link_element
from weft.controller.entities import entry
from weft.controller.fabric import FabricController
from weft.controller.grpc_targets import embedded_targets
from weft.controller.lab import Lab
from weft.controller.links import LinkRefusedError, set_link
from weft.controller.operations import OperationRefusedError, Operations, OperationsSettings
from weft.controller.pipeline import Pipeline
from weft.topologies import leaf_spine

FABRIC = leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
PIPELINE = Pipeline(fabric_p4info(), b"{}")
Invoke = Callable[..., Awaitable[Result]]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "lab.json"
    monkeypatch.setenv("WEFT_STATE_FILE", str(path))
    return path


def with_lab(state: Path, test: Callable[[P4RuntimeDouble, FabricController, Invoke], Awaitable[None]]) -> None:
    """Run a test with a lab up: server, controller with a job, state file; commands run in a thread."""

    async def invoke(*arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, command, arguments)

    async def body() -> None:
        double = P4RuntimeDouble()
        server, address = await serve(double)
        p4info = state.with_name("fabric.txtpb")
        p4info.write_text(text_format.MessageToString(PIPELINE.p4info))
        targets = embedded_targets(FABRIC, address)
        grpc = {name: [target.address, target.device_id] for name, target in targets.items()}
        document = {
            "fabric": dict(FABRIC.parameters),
            "grpc": grpc,
            "p4info": str(p4info),
            "target": "embedded",
        }
        state.write_text(json.dumps(document))
        try:
            async with FabricController(FABRIC, PIPELINE, targets, timeout_s=10) as control:
                await control.add_job(7, [host.name for host in FABRIC.hosts], slot_count=16)
                await asyncio.wait_for(test(double, control, invoke), 60)
        finally:
            await server.stop(None)

    asyncio.run(body())


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    parsed = json.loads(result.output)
    assert isinstance(parsed, list)
    return parsed


def test_routes_show_prefixes_and_all_next_hops_by_name(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        double.device(1).packets_of_entry = 5
        shown = {row["prefix"]: row for row in rows(await invoke("routes", "p0l0", "--json"))}
        assert shown["10.0.1.0/24"]["next_hops"] == ["3 (p0s0)", "4 (p0s1)"]
        assert shown["10.0.0.2/32"]["next_hops"] == ["2 (h1)"]
        assert shown["fd00:0:1::/64"]["packets"] == 5
        plain = (await invoke("routes")).output
        assert plain.splitlines()[0].split() == ["switch", "prefix", "next_hops", "group", "packets"]
        assert {line.split()[0] for line in plain.splitlines()[1:]} == {"p0l0", "p0l1", "p0s0", "p0s1"}

    with_lab(state, body)


def test_tables_show_values_as_people_write_them(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        arp = rows(await invoke("tables", "p0l0", "--table", "arp_responder", "--json"))
        assert arp[0]["match"] == {"target_ipv4": "10.0.0.254"}
        assert arp[0]["action"] == "arp_reply(mac=02:01:00:00:00:00)"
        everything = rows(await invoke("tables", "p0l0", "--json"))
        assert {"ecmp", "ipv6_lpm", "aggregation_job"} <= {row["table"] for row in everything}
        assert [row["action"] for row in everything if row["table"] == "ecmp"] == ["group 1"]
        unknown = await invoke("tables", "p0l0", "--table", "ecmpp")
        assert unknown.exit_code == 3
        assert "unknown table 'ecmpp' (valid: " in unknown.output

    with_lab(state, body)


def test_counters_name_ports_reasons_outcomes_and_jobs(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        schema = PIPELINE.schema()
        device = double.device(1)
        device.counters = {
            (schema.counters["port_sent"].id, 3): 11,
            (schema.counters["ecn_marked"].id, 3): 4,
            (schema.counters["aggregation_outcomes"].id, 2): 6,
        }
        device.constants = encode_entities([entry("drops", {"reason": 5}, "drops.no_route")], schema)
        device.packets_of_entry = 9
        shown = {
            (row["counter"], row["of"]): row["packets"] for row in rows(await invoke("counters", "p0l0", "--json"))
        }
        assert shown == {
            ("sent", "port 3 (p0s0)"): 11,
            ("ecn_marked", "port 3 (p0s0)"): 4,
            ("aggregation", "multicast"): 6,
            ("dropped", "no_route"): 9,
            ("job", "7"): 9,
        }
        read = (await control.read_counters())["p0l0"]
        assert (read.ecn_marked_packets, read.aggregated_packets) == (4, 6)

    with_lab(state, body)


def test_ecn_is_set_without_unseating_the_lab_s_controller(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        changed = rows(
            await invoke(
                "ecn",
                "set",
                "p0l0",
                "--kmin",
                "8000",
                "--kmax",
                "16000",
                "--pmax",
                "0.5",
                "--port",
                "3",
                "--json",
            )
        )
        values = {row["port"]: (row["kmin_bytes"], row["kmax"], row["pmax"]) for row in changed}
        assert values["3 (p0s0)"] == (8000, 200, 0.5)
        assert {row["port"]: row["kmin_bytes"] for row in changed}["1 (h0)"] == 40_000
        added = rows(await invoke("ecn", "set", "--class", "5", "--kmin", "1", "--kmax", "2", "--pmax", "1", "--json"))
        assert {row["class"] for row in added} == {3, 5}
        await control.remove_job(7)
        assert control.session("p0l0").is_primary
        refused = await invoke("ecn", "set", "--kmin", "2", "--kmax", "1", "--pmax", "1")
        assert refused.exit_code == 3
        assert "kmax_bytes=1 is below kmin_bytes=2" in refused.output

    with_lab(state, body)


def test_int_and_trees(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        stamps = rows(await invoke("int", "p0s0", "--json"))
        assert [(row["port"], row["rate_gbps"]) for row in stamps] == [("1 (p0l0)", 10), ("2 (p0l1)", 10)]
        nodes = {row["switch"]: row for row in rows(await invoke("trees", "--json"))}
        assert nodes["p0s0"]["role"] == "root"
        assert nodes["p0s0"]["children"] == ["1 (p0l0)", "2 (p0l1)"]
        assert (nodes["p0l1"]["parent"], nodes["p0l1"]["slots"]) == ("3 (p0s0)", "0-15")
        assert "p0s1" not in nodes

    with_lab(state, body)


def test_health_reports_what_is_wrong_and_exits_1(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        well = await invoke("health", "--json")
        assert {row["state"] for row in rows(well)} == {"well"}
        for key in [key for key in double.device(1).entities if key[0] == "action_profile_group"]:
            del double.device(1).entities[key]
        double.device(2).config = None
        ill = await invoke("health", "--json")
        assert ill.exit_code == 1
        states = {row["switch"]: row["state"] for row in json.loads(ill.output)}
        assert states == {
            "p0l0": "1 planned entries are missing",
            "p0l1": "no program is loaded",
            "p0s0": "well",
            "p0s1": "well",
        }

    with_lab(state, body)


class StoppedClock:
    """Time that does not pass."""

    def now_ps(self) -> int:
        return 0

    async def sleep_ps(self, duration_ps: int) -> None:
        raise AssertionError(f"nothing waits, for {duration_ps} ps")


def test_health_reports_links_in_use_that_lose_packets_until_they_are_restored(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        operations = Operations(control, OperationsSettings(), StoppedClock())
        path = state.with_name("operations.sock")
        nobody = cast("BlockingFabricController", None)
        server = OperationsServer(path, nobody, operations, 1.0, cast("EvControl", None))
        state.write_text(json.dumps(json.loads(state.read_text()) | {"operations": str(path)}))
        try:
            assert (await invoke("health")).exit_code == 0
            link = FABRIC.link_between("h1", "p0l0")
            for _ in range(2):
                await operations.take_out_faulty(link, "lossy", "h1 → p0l0: 9 of 100 packets lost")
            assert [event.kind for event in operations.log] == ["lossy", "kept in use"]
            ill = await invoke("health", "--json")
            assert ill.exit_code == 1
            found = {row["switch"]: (row["state"], row["links_faulty"]) for row in json.loads(ill.output)}
            assert found.pop("p0l0") == (
                "its link to h1 is lossy (h1 → p0l0: 9 of 100 packets lost)",
                ["h1"],
            )
            assert set(map(str, found.values())) == {"('well', [])"}
            await operations.restore(link_element(FABRIC, link))
            assert (await invoke("health")).exit_code == 0
            with pytest.raises(OperationRefusedError):
                await operations.restore(link_element(FABRIC, link))
        finally:
            server.close()

    with_lab(state, body)


def test_health_shows_the_packets_that_the_lab_s_controller_dropped(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        before = rows(await invoke("health", "--json"))
        assert [row["dropped_packet_ins"] for row in before] == [0, 0, 0, 0]
        document = json.loads(state.read_text()) | {"dropped_packet_ins": {"p0l1": 17}}
        state.write_text(json.dumps(document))
        after = {row["switch"]: row["dropped_packet_ins"] for row in rows(await invoke("health", "--json"))}
        assert after == {"p0l0": 0, "p0l1": 17, "p0s0": 0, "p0s1": 0}
        line = next(each for each in (await invoke("health")).output.splitlines() if "p0l1" in each)
        assert line.split()[-1] == "17"

    with_lab(state, body)


def test_reading_takes_part_in_no_election(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        bids = {number: device.highest for number, device in double.devices.items()}
        for arguments in (
            ["routes"],
            ["tables"],
            ["counters"],
            ["ecn", "show"],
            ["int"],
            ["trees"],
            ["health"],
        ):
            assert (await invoke(*arguments)).exit_code == 0
        assert {number: device.highest for number, device in double.devices.items()} == bids

    with_lab(state, body)


def test_a_switch_by_address_needs_no_lab_and_no_p4info(state: Path) -> None:
    async def body(double: P4RuntimeDouble, control: FabricController, invoke: Invoke) -> None:
        address = json.loads(state.read_text())["grpc"]["p0l0"][0]
        state.unlink()
        shown = rows(await invoke("--address", address, "--device-id", "2", "routes", "--json"))
        assert {row["switch"] for row in shown} == {"device-2"}
        unloaded = await invoke("--address", address, "--device-id", "99", "tables")
        assert unloaded.exit_code == 1
        assert "device-99: no program is loaded" in unloaded.output

    with_lab(state, body)


def test_without_a_lab_the_exit_code_is_4(state: Path) -> None:
    missing = CliRunner().invoke(command, ["routes"])
    assert missing.exit_code == 4
    assert "no lab runs on this machine" in missing.output
    for content in ("{", "[]", '{"grpc": {"p0l0": ["x"]}}', '{"grpc": {}}'):
        state.write_text(content)
        assert CliRunner().invoke(command, ["routes"]).exit_code == 4, content


def test_an_unanswering_switch_is_4_and_an_unknown_one_3(state: Path) -> None:
    state.write_text(json.dumps({"grpc": {"p0l0": ["127.0.0.1:1", 1]}}))
    silent = CliRunner().invoke(command, ["routes"])
    assert silent.exit_code == 4
    assert "p0l0: GetForwardingPipelineConfig: no answer" in silent.output
    unknown = CliRunner().invoke(command, ["routes", "p9l9"])
    assert unknown.exit_code == 3
    assert "unknown switch 'p9l9' (valid: p0l0)" in unknown.output
    assert CliRunner().invoke(command, ["--device-id", "1", "routes"]).exit_code == 2


def test_a_file_that_is_not_p4info_is_3(state: Path) -> None:
    state.write_text(json.dumps({"grpc": {"p0l0": ["127.0.0.1:1", 1]}}))
    refused = CliRunner().invoke(command, ["--p4info", str(state), "routes"])
    assert refused.exit_code == 3
    assert "not P4Info" in refused.output


def test_health_of_a_lab_that_is_gone_is_one_line(state: Path) -> None:
    grpc = {switch.name: ["127.0.0.1:1", switch.device_id] for switch in FABRIC.switches}
    state.write_text(json.dumps({"fabric": dict(FABRIC.parameters), "grpc": grpc, "target": "embedded"}))
    result = CliRunner().invoke(command, ["health"])
    assert result.exit_code == 4
    (line,) = result.output.strip().splitlines()
    assert line.startswith(f"weft: none of the lab's switches answers ({len(FABRIC.switches)} asked): p0l0: ")


@pytest.mark.parametrize("group", [0, 7])
def test_no_interface_that_is_not_the_lab_s_own_is_touched(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = FABRIC.switch("p0l0")
    ports = tuple(replace(port, interface="lo") for port in leaf.ports)
    switches = tuple(replace(switch, ports=ports) if switch is leaf else switch for switch in FABRIC.switches)
    fabric = replace(FABRIC, switches=switches)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a command has been run"))
    with refused(LinkRefusedError, valid="links: veth", problem="lo is not an interface of the"):
        set_link(Lab({}, fabric, interface_group=group), fabric.link_between("h0", "p0l0"), up=False)


@pytest.mark.parametrize(
    ("arguments", "target", "code", "message"),
    [
        (["p0l0-p0s0", "down"], "embedded", 4, "links: internal"),
        (["h0<->p0l0", "up"], "bmv2", 4, "links of BMv2 do not fail"),
        (["p0l0-p0l1", "down"], "embedded", 3, "unknown link 'p0l0-p0l1'"),
        (["p0l0", "down"], "embedded", 3, "names no link (valid: NODE-NODE"),
        (["p0l0-p0s0", "broken"], "embedded", 2, "(valid: drain, cordon, restore, down, up)"),
    ],
)
def test_links_that_cannot_be_taken_down_are_refused(
    state: Path, arguments: list[str], target: str, code: int, message: str
) -> None:
    grpc = {switch.name: ["127.0.0.1:1", switch.device_id] for switch in FABRIC.switches}
    state.write_text(json.dumps({"fabric": dict(FABRIC.parameters), "grpc": grpc, "target": target}))
    result = CliRunner().invoke(command, ["link", *arguments])
    assert (result.exit_code, message in result.output) == (code, True), result.output


def test_a_switch_alone_has_no_links() -> None:
    result = CliRunner().invoke(command, ["--address", "127.0.0.1:1", "link", "p0l0-p0s0", "down"])
    assert (result.exit_code, "needs a running lab" in result.output) == (2, True)
