"""gNMI clients read interfaces, queues and counters from the server that serves P4Runtime."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
import pytest
from finsy import GNMIPath
from finsy.gnmiclient import GNMIClient, GNMIClientError
from finsy.grpcutil import GRPCStatusCode
from finsy.proto import gnmi, gnmi_ext, gnmi_grpc
from google.protobuf import text_format
from p4runtime_client import connected
from router_program import router_document, router_p4info
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from weft.switch.daemon.config import parse_config
from weft.switch.daemon.daemon import Daemon
from weft.switch.gnmi.leaves import LEAVES, OPENCONFIG
from weft.switch.gnmi.service import MAX_SUBSCRIBERS

STATUS = GNMIPath("interfaces/interface[name=*]/state/oper-status")
TIMEOUT_S = 60


def _config(switches: int) -> dict[str, Any]:
    ports = [{"port": n, "rate_bps": 10**9, "delay_ps": 1000} for n in (1, 2)]
    links = [[1, 1, 2, 1], [1, 2, 2, 2]] if switches == 2 else [[1, 1, 1, 2]]
    return {
        "seed": 1,
        "grpc_address": "127.0.0.1:0",
        "switches": [{"device_id": n, "name": f"s{n}", "ports": ports} for n in range(1, switches + 1)],
        "internal_links": links,
    }


@pytest.fixture
def daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    """Two switches with two links between them; one switch with a link to itself where the parameter is 1."""
    running = Daemon(parse_config(json.dumps(_config(getattr(request, "param", 2)))))
    running.serve()
    yield running
    running.close()


ONE_SWITCH = pytest.mark.parametrize("daemon", [1], indirect=True)


def asked(daemon: Daemon, ask: Callable[[GNMIClient], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with GNMIClient(daemon.server.address) as client, asyncio.timeout(TIMEOUT_S):
            return await ask(client)

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def stub_of(daemon: Daemon) -> AsyncIterator[gnmi_grpc.gNMIStub]:
    async with grpc.aio.insecure_channel(daemon.server.address) as channel, asyncio.timeout(TIMEOUT_S):
        yield gnmi_grpc.gNMIStub(channel)


def refusal_of(daemon: Daemon, method: str, request: Any) -> tuple[grpc.StatusCode, str]:
    """Return the status with which a call is refused."""
    with grpc.insecure_channel(daemon.server.address) as channel:
        stub = gnmi_grpc.gNMIStub(channel)
        argument = iter([request]) if method == "Subscribe" else request
        with pytest.raises(grpc.RpcError) as caught:
            list(getattr(stub, method)(argument, timeout=TIMEOUT_S))
    return caught.value.code(), caught.value.details()


def of(switch: str) -> GNMIPath:
    return GNMIPath(target=switch)


def test_capabilities_name_models_encodings_and_version(daemon: Daemon) -> None:
    answer = asked(daemon, GNMIClient.capabilities)
    assert answer.gNMI_version == "0.10.0"
    assert list(answer.supported_encodings) == [gnmi.JSON, gnmi.PROTO, gnmi.JSON_IETF]
    assert "openconfig-interfaces" in [each.name for each in answer.supported_models]


def test_counters_are_those_of_the_ports(daemon: Daemon) -> None:
    controller = connected(daemon.server.address, device_id=1)
    packet = bytes(Ether(src="02:00:00:00:00:01") / IP(dst="10.0.0.9", ttl=7) / UDP() / b"payload")
    controller.send(packet={"payload": packet, "metadata": [{"metadata_id": 1, "value": b"\x01"}]})

    async def read(client: GNMIClient) -> None:
        async def values(switch: str, path: str) -> dict[str, Any]:
            found = await client.get(GNMIPath(path), prefix=of(switch))
            return {each.path.last: each.value for each in found}

        arrived = "interfaces/interface[name=s2:1]/state/counters"
        while (await values("s2", arrived))["in-pkts"] == 0:
            pass  # the engine runs by itself
        sent = await values("s1", "interfaces/interface[name=s1:1]/state/counters")
        assert (sent["out-pkts"], sent["out-octets"], sent["in-pkts"]) == (1, len(packet), 0)
        received = await values("s2", arrived)
        assert (received["in-octets"], received["in-errors"]) == (len(packet), 0)
        queue = "qos/interfaces/interface[interface-id=s1:1]/output/queues/queue[name={}]/state"
        assert await values("s1", queue.format(0)) == {
            "name": "0",
            "transmit-pkts": 1,
            "transmit-octets": len(packet),
            "dropped-pkts": 0,
            "dropped-octets": 0,
        }
        assert (await values("s1", queue.format(7)))["transmit-pkts"] == 0
        switch = {
            each.path.last: each.value
            for each in await client.get(GNMIPath("switch/state", origin="weft"), prefix=of("s2"))
        }
        assert (switch["name"], switch["received-pkts"], switch["device-id"]) == ("s2", 1, 2)

    asked(daemon, read)
    controller.close()


def test_names_and_numbers_of_ports(daemon: Daemon) -> None:
    async def read(client: GNMIClient) -> list[tuple[str, str, Any]]:
        found = await client.get(GNMIPath("interfaces/interface"), prefix=of("s2"))
        return [(each.path["name"], each.path.last, each.value) for each in found if "counters" not in str(each.path)]

    assert asked(daemon, read)[:8] == [
        ("s2:1", "name", "s2:1"),
        ("s2:2", "name", "s2:2"),
        ("s2:1", "name", "s2:1"),
        ("s2:2", "name", "s2:2"),
        ("s2:1", "type", "iana-if-type:ethernetCsmacd"),
        ("s2:2", "type", "iana-if-type:ethernetCsmacd"),
        ("s2:1", "ifindex", 1),
        ("s2:2", "ifindex", 2),
    ]


@pytest.mark.parametrize(
    ("encoding", "number", "text"),
    [
        (gnmi.JSON, ("json_val", b"0"), ("json_val", b'"UP"')),
        (gnmi.JSON_IETF, ("json_ietf_val", b'"0"'), ("json_ietf_val", b'"UP"')),
        (gnmi.PROTO, ("uint_val", 0), ("string_val", "UP")),
    ],
)
@ONE_SWITCH
def test_encodings(daemon: Daemon, encoding: Any, number: tuple[str, Any], text: tuple[str, Any]) -> None:
    names = ("counters/in-octets", "oper-status")
    paths = [GNMIPath(f"interfaces/interface[name=s1:1]/state/{name}").path for name in names]
    with grpc.insecure_channel(daemon.server.address) as channel:
        answer = gnmi_grpc.gNMIStub(channel).Get(gnmi.GetRequest(path=paths, encoding=encoding))
    values = [each.update[0].val for each in answer.notification]
    assert [(kind := value.WhichOneof("value"), getattr(value, kind)) for value in values] == [number, text]
    assert not answer.notification[0].HasField("prefix")


def test_a_target_names_a_switch_or_all(daemon: Daemon) -> None:
    request = gnmi.GetRequest(prefix=of("*").path, path=[STATUS.path], encoding=gnmi.PROTO)
    with grpc.insecure_channel(daemon.server.address) as channel:
        answer = gnmi_grpc.gNMIStub(channel).Get(request)
    assert [(each.prefix.target, len(each.update)) for each in answer.notification] == [("s1", 2), ("s2", 2)]
    request.prefix.target = "s3"
    assert refusal_of(daemon, "Get", request) == (
        grpc.StatusCode.NOT_FOUND,
        "unknown target 's3' (valid: *, s1, s2)",
    )
    request.ClearField("prefix")
    code, message = refusal_of(daemon, "Get", request)
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert "(valid: *, s1, s2)" in message


@ONE_SWITCH
def test_bad_requests_are_refused_with_the_reason(daemon: Daemon) -> None:
    def get(**more: Any) -> tuple[grpc.StatusCode, str]:
        return refusal_of(daemon, "Get", gnmi.GetRequest(**{"path": [STATUS.path], "encoding": gnmi.PROTO, **more}))

    def subscribe(**more: Any) -> tuple[grpc.StatusCode, str]:
        return refusal_of(daemon, "Subscribe", gnmi.SubscribeRequest(**more))

    unimplemented = grpc.StatusCode.UNIMPLEMENTED
    for encoding, name in ((gnmi.BYTES, "BYTES"), (gnmi.ASCII, "ASCII"), (77, "77")):
        expected = (unimplemented, f"the encoding {name} is not supported (valid: JSON, PROTO, JSON_IETF)")
        assert get(encoding=encoding) == expected
        one = gnmi.SubscriptionList(subscription=[gnmi.Subscription(path=STATUS.path)], encoding=encoding)
        assert subscribe(subscribe=one) == expected
    assert get(use_models=[gnmi.ModelData(name="x")])[0] is unimplemented
    assert get(extension=[gnmi_ext.Extension()])[0] is unimplemented
    assert get(type=9)[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert get(path=[gnmi.Path(elem=[gnmi.PathElem(name="\n" * 100_000)])])[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert get(path=[STATUS.path] * 1025) == (grpc.StatusCode.INVALID_ARGUMENT, "1025 paths (valid: at most 1024)")
    assert get(path=[STATUS.set(name="s9:1").path]) == (
        grpc.StatusCode.NOT_FOUND,
        "nothing has the path /interfaces/interface[name]/state/oper-status with 's9:1'",
    )
    code, message = get(path=[gnmi.Path(origin="weft"), *[gnmi.Path()] * 1023], prefix=of("*").path)
    assert (code, "more than 100000 values" in message) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    assert subscribe(poll=gnmi.Poll())[0] is invalid
    assert subscribe() == (invalid, "the first message of a call is a subscription list")
    assert subscribe(subscribe=gnmi.SubscriptionList(encoding=gnmi.PROTO)) == (
        invalid,
        "the list has no subscriptions",
    )
    assert subscribe(subscribe=gnmi.SubscriptionList(mode=7))[0] is invalid  # type: ignore[arg-type]
    code, message = refusal_of(daemon, "Set", gnmi.SetRequest(delete=[STATUS.path]))
    assert (code, "P4Runtime" in message) == (unimplemented, True)


@ONE_SWITCH
def test_configuration_is_empty(daemon: Daemon) -> None:
    assert asked(daemon, lambda client: client.get(GNMIPath("interfaces"), config=True)) == []


@ONE_SWITCH
def test_once_ends_after_all_leaves(daemon: Daemon) -> None:
    async def read() -> list[gnmi.SubscribeResponse]:
        subscriptions = [gnmi.Subscription(path=gnmi.Path())]
        asks = gnmi.SubscriptionList(mode=gnmi.SubscriptionList.ONCE, encoding=gnmi.PROTO, subscription=subscriptions)
        async with stub_of(daemon) as stub:
            silent = gnmi.SubscriptionList(updates_only=True)
            silent.MergeFrom(asks)
            only = [each async for each in stub.Subscribe(iter([gnmi.SubscribeRequest(subscribe=silent)]))]
            assert only == [gnmi.SubscribeResponse(sync_response=True)]
            return [each async for each in stub.Subscribe(iter([gnmi.SubscribeRequest(subscribe=asks)]))]

    *updates, last = asyncio.run(read())
    assert last.sync_response
    names = {"/".join(elem.name for elem in each.path.elem) for one in updates for each in one.update.update}
    declared = {"/".join(step.name for step in leaf.steps) for leaf in LEAVES if leaf.origin == OPENCONFIG}
    # No port has a MAC of its own here, so none counts its control frames.
    assert declared - names == {"interfaces/interface/ethernet/state/counters/in-mac-control-frames"}
    assert names <= declared


@ONE_SWITCH
def test_a_poll_reads_everything_again(daemon: Daemon) -> None:
    async def read() -> None:
        async with stub_of(daemon) as stub:
            call = stub.Subscribe()
            asks = gnmi.SubscriptionList(
                mode=gnmi.SubscriptionList.POLL,
                encoding=gnmi.PROTO,
                subscription=[gnmi.Subscription(path=STATUS.path)],
            )
            await call.write(gnmi.SubscribeRequest(subscribe=asks))
            for state in ("UP", "DOWN", "DOWN"):
                values = (await call.read()).update.update
                assert [each.val.string_val for each in values] == [state, "UP"]
                assert (await call.read()).sync_response
                daemon.wiring.board.set_up(1, 1, False)
                await call.write(gnmi.SubscribeRequest(poll=gnmi.Poll()))
            await call.read(), await call.read()
            await call.write(gnmi.SubscribeRequest(subscribe=asks))
            assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(read())


def test_changes_of_a_port_are_reported(daemon: Daemon) -> None:
    board = daemon.wiring.board

    async def read(client: GNMIClient) -> None:
        changes = client.subscribe(prefix=of("s2"))
        changes.on_change(STATUS)
        first = [(each.path["name"], each.value) async for each in changes.synchronize()]
        assert first == [("s2:1", "UP"), ("s2:2", "UP")]
        board.set_up(1, 1, False)  # another switch's
        board.set_up(2, 2, False)
        seen = []
        async for each in changes.updates():
            seen.append((each.path["name"], each.value))
            board.set_up(2, 2, True)
            if len(seen) == 2:
                break
        assert seen == [("s2:2", "DOWN"), ("s2:2", "UP")]
        changes.cancel()

    asked(daemon, read)


@ONE_SWITCH
def test_samples_come_again_and_again(daemon: Daemon) -> None:
    time_path = GNMIPath("switch/state/emulated-time-ns", origin="weft")
    name_path = GNMIPath("switch/state/name", origin="weft")

    async def read(client: GNMIClient) -> None:
        samples = client.subscribe()
        samples.sample(time_path, sample_interval=10**8)
        samples.sample(name_path, sample_interval=10**8, suppress_redundant=True, heartbeat_interval=3 * 10**8)
        first = {each.path.last async for each in samples.synchronize()}
        assert first == {"emulated-time-ns", "name"}
        times: list[int] = []
        names = 0
        async for each in samples.updates():
            if each.path.last == "name":
                names += 1  # by the heartbeat alone
            else:
                times.append(each.value)
            if names == 2:
                break
        assert len(times) >= 4
        assert times == sorted(set(times))
        samples.cancel()

    asked(daemon, read)


def test_subscribers_are_bounded_and_leave_nothing_behind(daemon: Daemon) -> None:
    before = threading.active_count()

    async def crowd() -> None:
        async with stub_of(daemon) as stub:
            request = gnmi.SubscribeRequest(
                subscribe=gnmi.SubscriptionList(
                    prefix=of("*").path,
                    encoding=gnmi.PROTO,
                    subscription=[gnmi.Subscription(path=STATUS.path, mode=gnmi.ON_CHANGE)],
                )
            )
            for _ in range(2):  # those that have left make room
                calls = []
                while len(calls) < MAX_SUBSCRIBERS:
                    call = stub.Subscribe()
                    # It may be refused: the thread of an earlier one that was cancelled has not noticed yet.
                    with contextlib.suppress(grpc.aio.AioRpcError):
                        await call.write(request)
                        assert (await call.read()).update.prefix.target == "s1"
                        calls.append(call)
                late = stub.Subscribe()
                assert await late.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                for call in calls:
                    call.cancel()

    asyncio.run(crowd())
    while daemon.wiring.board._listeners:
        pass  # the server's threads hear of the ends by themselves
    # The pool keeps its idle threads; none was added for a subscription.
    assert threading.active_count() - before <= MAX_SUBSCRIBERS + 2


@ONE_SWITCH
def test_the_server_stops_while_clients_are_subscribed(daemon: Daemon) -> None:
    async def stay(client: GNMIClient) -> GRPCStatusCode:
        changes = client.subscribe()
        changes.on_change(STATUS)
        async for _ in changes.synchronize():
            pass
        stopping = asyncio.create_task(asyncio.to_thread(daemon.server.stop))
        with pytest.raises(GNMIClientError) as caught:
            async for _ in changes.updates():
                pass
        await stopping
        return caught.value.code

    assert asked(daemon, stay) in (GRPCStatusCode.CANCELLED, GRPCStatusCode.UNAVAILABLE)
    while daemon.wiring.board._listeners:
        pass


@ONE_SWITCH
def test_finsy_knows_the_ports_of_a_switch(daemon: Daemon, tmp_path: Any) -> None:
    info, program = tmp_path / "router.p4info.txtpb", tmp_path / "router.json"
    info.write_text(text_format.MessageToString(router_p4info()))
    program.write_bytes(router_document())

    async def ports() -> list[tuple[int, str, bool]]:
        options = fy.SwitchOptions(p4info=info, p4blob=program, device_id=1)
        async with asyncio.timeout(TIMEOUT_S), fy.Switch("s1", daemon.server.address, options) as switch:
            return [(port.id, port.name, port.up) for port in switch.ports]

    assert asyncio.run(ports()) == [(1, "s1:1", True), (2, "s1:2", True)]


def test_finsy_runs_without_ports_where_a_server_has_several_switches(daemon: Daemon, tmp_path: Any) -> None:
    info, program = tmp_path / "router.p4info.txtpb", tmp_path / "router.json"
    info.write_text(text_format.MessageToString(router_p4info()))
    program.write_bytes(router_document())

    async def ports() -> int:
        options = fy.SwitchOptions(p4info=info, p4blob=program, device_id=2)
        async with asyncio.timeout(TIMEOUT_S), fy.Switch("s2", daemon.server.address, options) as switch:
            return len(switch.ports)

    assert asyncio.run(ports()) == 0


@pytest.fixture
def veth() -> Iterator[tuple[str, str]]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2")
    ends = ("wgnmi0", "wgnmi1")
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
    for end in ends:
        subprocess.run(["ip", "link", "set", end, "up"], check=True)
    yield ends
    subprocess.run(["ip", "link", "del", ends[0]], check=False, capture_output=True)


@pytest.mark.mininet
def test_an_interface_has_a_state_as_in_linux(veth: tuple[str, str]) -> None:
    own, far = veth
    switch = {"device_id": 1, "name": "s1", "ports": [{"port": 7, "interface": own}]}
    daemon = Daemon(parse_config(json.dumps({"grpc_address": "127.0.0.1:0", "switches": [switch]})))
    daemon.serve()
    state = {"oper-status": "", "admin-status": ""}

    async def follow(client: GNMIClient) -> None:
        changes = client.subscribe()
        changes.on_change(*(GNMIPath(f"interfaces/interface[name={own}]/state/{leaf}") for leaf in state))

        async def until(oper: str, admin: str) -> None:
            updates = changes.updates()
            while state != {"oper-status": oper, "admin-status": admin}:
                update = await anext(updates)
                state[update.path.last] = update.value

        async for update in changes.synchronize():
            state[update.path.last] = update.value
        await until("UP", "UP")
        for end, command, oper, admin in (
            (far, "down", "DOWN", "UP"),
            (own, "down", "DOWN", "DOWN"),  # no carrier changes here: seen by looking again
            (own, "up", "DOWN", "UP"),
            (far, "up", "UP", "UP"),
        ):
            subprocess.run(["ip", "link", "set", end, command], check=True)
            await until(oper, admin)
        changes.cancel()

    asked(daemon, follow)
    daemon.close()


PAGE = (Path(__file__).parents[2] / "docs" / "gnmi.md").read_text(encoding="utf-8")


def test_the_page_lists_every_leaf_at_its_path() -> None:
    listed = dict(re.findall(r"^\| `(?:weft:)?(/[^`]+)` \| (.*) \|$", PAGE, re.MULTILINE))
    for leaf in LEAVES:
        container, _, name = str(leaf).rpartition("/")
        assert f"`{name}`" in listed[container], leaf


def test_gnmic_runs_the_pages_commands(daemon: Daemon) -> None:
    if shutil.which("gnmic") is None:
        pytest.skip("gnmic is not on PATH")
    commands = re.findall("^gnmic .*", PAGE, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        words = command.replace("127.0.0.1:9559", daemon.server.address).replace("p0l0", "s1").split()
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        (answer,) = json.loads(done.stdout)
        assert answer["updates"]
