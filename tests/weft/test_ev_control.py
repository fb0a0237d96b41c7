"""Entropy values (EVs) listed, denied, allowed and probed by an operator: in Python and by `weft controller ev`."""

from __future__ import annotations

import contextlib
import itertools
import json
import selectors
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from tests.weft.test_ev_routes import LEAF_SPINE, US, inputs, made
from weft import Fabric, topologies
from weft.clocks.ev_control import EvChoice, EvControl
from weft.clocks.real.host_control import ask_hosts
from weft.clocks.real.operations_server import OperationsServer
from weft.clocks.virtual.lab import VirtualLab
from weft.controller.cli import controller as command
from weft.controller.elements import switch_element
from weft.controller.errors import RequestRefusedError
from weft.errors import BadInputError, WeftError
from weft.run.collectives import CollectiveRequest
from weft.scenario import TransportSection
from weft.system.child_processes import ChildError
from weft.traffic.answering_socket import read_line, short_name
from weft.traffic.commands.base import Command, command_message
from weft.traffic.commands.counters import AskStats
from weft.traffic.commands.evs import AskEvs, EvOfPeer, ProbeEvs
from weft.traffic.host_control import MOST_COMMAND_BYTES, ControlSocket

KEPT = TransportSection(protocol="mrc", connections="kept")
PLANES = 2


def run(fabric: Fabric) -> None:
    assert fabric.run(CollectiveRequest("allreduce", inputs(4), "ring")).result.ok


def turns(fabric: Fabric, **choice: Any) -> int:
    return sum(each["turns"] for each in fabric.evs("h0", **choice))


def test_evs_over_a_link_are_denied_and_allowed_again() -> None:
    with made(LEAF_SPINE, "srv6", transport=KEPT) as fabric:
        run(fabric)
        over = fabric.evs("h0", link="p0l0-p0s1")
        assert over
        assert all(("p0l0", "p0s1") in zip(each["nodes"], each["nodes"][1:], strict=False) for each in over)
        assert {each["peer_host"] for each in over} == {"h3"}
        assert len(over) == len(fabric.evs("h0", switch="p0s1")) < len(fabric.evs("h0"))
        assert fabric.deny_evs("h0", link="p0l0-p0s1") == len({(each["peer"], each["value"]) for each in over})
        assert {each["state"] for each in fabric.evs("h0", link="p0l0-p0s1")} == {"denied"}
        before = turns(fabric, link="p0l0-p0s1")
        run(fabric)
        assert turns(fabric, link="p0l0-p0s1") == before
        (states,) = fabric.hosts.stats()[0]["entropy_values"]
        assert states["denied"] == len(over)
        fabric.allow_evs("h0", link="p0l0-p0s1")
        run(fabric)
        assert turns(fabric, link="p0l0-p0s1") > before
        assert {each["state"] for each in fabric.evs("h0")} == {"good"}


def test_what_an_operator_denies_outlives_queue_pairs_and_drains() -> None:
    """Connections that are made later, and flows, follow; a drain that ends allows only what it has denied itself."""
    with made(LEAF_SPINE, "structured_ev", transport=KEPT) as fabric:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        run(fabric)
        fabric.deny_evs("h0", peer="h3", switch="p0s1")
        spine = switch_element(LEAF_SPINE, "p0s1")
        lab.controller.call(lab.operations.drain(spine))
        with pytest.raises(WeftError, match="drained or cordoned"):
            fabric.allow_evs("h0", peer="h3", switch="p0s1")
        lab.controller.call(lab.operations.restore(spine))
        fabric.hosts.disconnect()
        run(fabric)
        denied = [each for each in fabric.evs("h0") if each["state"] == "denied"]
        assert {(each["peer_host"], "p0s1" in each["nodes"]) for each in denied} == {("h3", True)}


def test_a_queue_pair_keeps_an_ev() -> None:
    with made(LEAF_SPINE, "srv6", transport=KEPT) as fabric:
        run(fabric)
        before = fabric.evs("h0")
        with pytest.raises(ChildError, match=r"queue pair \d+ to \S+ would have no EV left"):
            fabric.deny_evs("h0")
        assert fabric.evs("h0") == before


def test_probes_tell_which_paths_work_without_traffic() -> None:
    with made(LEAF_SPINE, "srv6", transport=KEPT) as fabric:
        run(fabric)
        fabric.deny_evs("h0", switch="p0s2")
        fabric.schedule_link("p0l1", "p0s1", "down")
        fabric.incast("h1", 1_000)  # time passes
        found = fabric.probe_evs("h0", peer="h3")
        assert {each["peer_host"] for each in found} == {"h3"}
        dead = [each["round_trip_ps"] is None for each in found]
        assert dead == ["p0s1" in each["nodes"] for each in found]
        assert {each["state"] for each in found if "p0s2" in each["nodes"]} == {"denied"}
        # Four hops of 1 us there, and as many back.
        assert all(8 * US < each["round_trip_ps"] < 10 * US for each in found if each["round_trip_ps"] is not None)


def test_hashed_evs_are_denied_by_value_and_plane() -> None:
    topology = topologies.leaf_spine(planes=PLANES, leaves=2, spines=2, hosts_per_leaf=1)
    with Fabric(topology, clock="virtual", int_telemetry=False, transport=KEPT) as fabric:
        fabric.run(CollectiveRequest("allreduce", inputs(2), "ring"))
        evs = fabric.evs("h0")
        assert {each["nodes"] for each in evs} == {()}
        assert Counter(each["plane"] for each in evs) == {0: 80, 1: 80}
        value = evs[3]["value"]
        assert fabric.deny_evs("h0", value=value) == 1
        assert [each["state"] for each in fabric.evs("h0", value=value)] == ["denied"]
        assert len(fabric.probe_evs("h0", plane=1)) == 80
        fabric.deny_evs("h0", plane=1)
        before = turns(fabric, plane=1)
        fabric.run(CollectiveRequest("allreduce", inputs(2), "ring"))
        assert turns(fabric, plane=1) == before
        with pytest.raises(BadInputError, match=r"link: switches hash EVs, which name no paths \(valid: value"):
            fabric.evs("h0", link="p0l0-p0s1")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"peer": "h9"}, "h9"),
        ({"peer": "h0"}, r"h0 has no queue pair of MRC to h0 \(valid: h"),
        ({"value": 5}, r"h0 has no EV 0x00000005 \(valid: 0xc000"),
        ({"plane": 4}, r"no plane 4 \(valid: 0 to 0"),
        ({"link": "p0l0"}, "names no link"),
        ({"link": "p0l1-p0l0"}, "p0l"),
        ({"switch": "p0s9"}, "p0s9"),
        ({"peer": "h1", "switch": "p0s1"}, "no EV of h0 passes p0s1"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(choice: dict[str, Any], expected: str) -> None:
    with made(LEAF_SPINE, "srv6", transport=KEPT) as fabric:
        run(fabric)
        with pytest.raises(BadInputError, match=expected):
            fabric.deny_evs("h0", **choice)


def test_other_transports_have_none(tmp_path: Path) -> None:
    with Fabric(LEAF_SPINE, clock="virtual") as fabric, commanded(fabric, tmp_path, "rc") as ev:
        for ask in (fabric.evs, fabric.deny_evs, fabric.allow_evs, fabric.probe_evs):
            with pytest.raises(BadInputError, match=r"rc has no EVs \(valid: mrc\)"):
                ask("h0")
        for name in ("list", "deny", "allow", "probe"):
            answer = ev(name, "h0")
            assert (answer.exit_code, "rc has no EVs (valid: mrc)" in answer.output) == (3, True)


def test_no_chosen_ev_is_an_error(tmp_path: Path) -> None:
    with made(LEAF_SPINE, "srv6", transport=KEPT) as fabric, commanded(fabric, tmp_path) as ev:
        assert fabric.evs("h0") == []
        for ask in (fabric.deny_evs, fabric.allow_evs, fabric.probe_evs):
            with pytest.raises(BadInputError, match=r"valid: none: it has no queue pairs of MRC now"):
                ask("h0")
        for name in ("deny", "allow", "probe"):
            answer = ev(name, "h0", "--plane", "0")
            assert (answer.exit_code, "no queue pairs of MRC now" in answer.output) == (3, True)


@pytest.mark.parametrize("routing", ["srv6", None])
def test_a_denial_is_taken_back_when_its_queue_pairs_have_ended(routing: str | None) -> None:
    """Queue pairs draw other values where switches hash EVs, so no later one may have a denied value."""
    with made(LEAF_SPINE, routing, transport=KEPT) if routing else hashing() as fabric:
        run(fabric)
        value = fabric.evs("h0", peer="h3")[3]["value"]
        fabric.deny_evs("h0", peer="h3", value=value)
        (before,) = fabric.evs("h0", peer="h3", value=value)
        fabric.hosts.disconnect()
        (row,) = fabric.evs("h0")
        assert row == {**before, "queue_pair": None, "active": False, "turns": 0}
        assert row["state"] == "denied"
        with pytest.raises(BadInputError, match="no queue pair with such an EV now"):
            fabric.probe_evs("h0")
        assert fabric.deny_evs("h0", value=value) == 1
        assert fabric.allow_evs("h0", plane=0) == 1
        assert fabric.evs("h0") == []
        run(fabric)
        assert {each["state"] for each in fabric.evs("h0")} == {"good"}


def hashing() -> Fabric:
    return Fabric(LEAF_SPINE, clock="virtual", int_telemetry=False, transport=KEPT)


def test_operators_do_not_give_up_each_others_probes() -> None:
    with made(LEAF_SPINE, "srv6", transport=KEPT) as fabric:
        run(fabric)
        probing, second_asked = threading.Event(), threading.Event()
        asked: list[str] = []

        def ask(commands: Mapping[int, Command[Any]]) -> Mapping[int, Any]:
            asked.append(threading.current_thread().name)
            return fabric.hosts.ask_hosts(commands)

        def let_arrive() -> None:
            if not probing.is_set():
                probing.set()
                second_asked.wait()
            fabric.lab.let_answers_arrive()

        control = EvControl(LEAF_SPINE, "mrc", ask, let_arrive)

        def probe_too() -> None:
            second_asked.set()
            control.probe("h0", EvChoice(peer="h3"))

        second = threading.Thread(target=probe_too, name="second")
        first = threading.Thread(target=control.probe, args=("h0", EvChoice(peer="h3")), name="first")
        first.start()
        probing.wait()
        second.start()
        for each in (first, second):
            each.join()
        assert asked == sorted(asked)
        assert set(asked) == {"first", "second"}


def test_results_count_the_evs_of_queue_pairs_that_have_ended() -> None:
    """A workload has a queue pair a flow, and no connections are kept either."""
    with made(LEAF_SPINE, "srv6") as fabric:
        fabric.permutation(100_000)
        flows = fabric.hosts.stats()
    expected = Counter[str]()
    for host in flows:
        (states,) = host["entropy_values"]
        expected.update(states)
    # Four queue pairs with two ends each, over four paths, or one between hosts of a leaf.
    assert set(expected) == {"good"}
    assert 8 <= expected["good"] <= 32


class ByCommand:
    """`weft controller` against host sockets as the real clock's processes have them."""

    def __init__(self, fabric: Fabric, directory: Path, protocol: str) -> None:
        lab = fabric.lab
        assert isinstance(lab, VirtualLab)
        endpoints = lab._endpoints
        self.paths = [directory / f"host{number}.control" for number in range(len(endpoints))]
        commands = [each._commands for each in endpoints]
        self._sockets = [ControlSocket(path, each) for path, each in zip(self.paths, commands, strict=True) if each]
        control = EvControl(lab.fabric, protocol, partial(ask_hosts, self.paths), lambda: None)
        operations = directory / "operations"
        self._server = OperationsServer(operations, cast("Any", None), cast("Any", None), 1.0, control)
        self.state = directory / "state.json"
        document = {"grpc": {"p0l0": ["-", 1]}, "operations": str(operations)}
        self.state.write_text(json.dumps(document))
        self._serving = True
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in self._sockets:
                selector.register(each, selectors.EVENT_READ)
            while self._serving:
                for key, _ in selector.select(0.05):
                    cast("ControlSocket", key.fileobj).serve()

    def __call__(self, *arguments: str) -> Result:
        return CliRunner(env={"WEFT_STATE_FILE": str(self.state)}).invoke(command, ["ev", *arguments])

    def close(self) -> None:
        self._server.close()
        self._serving = False
        self._thread.join()
        for each in self._sockets:
            each.close()


@contextmanager
def commanded(fabric: Fabric, directory: Path, protocol: str = "mrc") -> Iterator[ByCommand]:
    ev = ByCommand(fabric, directory, protocol)
    try:
        yield ev
    finally:
        ev.close()


def test_the_command_does_the_same_over_the_hosts_sockets(tmp_path: Path) -> None:
    with made(LEAF_SPINE, "srv6", transport=KEPT) as fabric:
        run(fabric)
        with commanded(fabric, tmp_path) as ev:
            listed = ev("list", "h0", "--json")
            assert listed.exit_code == 0, listed.output
            assert json.loads(listed.output) == json.loads(json.dumps(fabric.evs("h0")))
            rows = fabric.evs("h0", link="p0l0-p0s1")
            value = rows[0]["value"]
            count = len({each["peer"] for each in fabric.evs("h0", value=value)})
            denied = ev("deny", "h0", "--value", hex(value))
            assert (denied.exit_code, denied.output) == (0, f"denied {count} EV{'s' * (count > 1)} of h0\n")
            shown = ev("list", "h0", "--value", hex(value)).output.splitlines()
            assert shown[0].split() == ["queue", "pair", "peer", "plane", "value", "state", "active", "packets"]
            assert len(shown) > 1
            assert all("denied" in line and f"0x{value:08x}" in line for line in shown[1:])
            assert ev("allow", "h0", "--value", hex(value)).exit_code == 0
            probed = ev("probe", "h0", "--peer", "h3", "--json")
            assert {row["peer_host"] for row in json.loads(probed.output)} == {"h3"}
            last = ev("deny", "h0")
            assert (last.exit_code, "would have no EV left" in last.output) == (1, True)
            for wrong, code in (
                (("list", "h7"), 3),
                (("deny", "h0", "--peer", "h0"), 3),
                (("deny", "h0", "--value", "5"), 3),
                (("deny", "h0", "--value", "0x1ffffffff"), 2),
            ):
                assert ev(*wrong).exit_code == code


def test_the_socket_takes_no_other_commands(tmp_path: Path) -> None:
    with made(LEAF_SPINE, "srv6") as fabric, commanded(fabric, tmp_path) as ev:
        with pytest.raises(RequestRefusedError, match=r"stats is the runner's \(valid: evs, set_evs, probe_evs, ev_p"):
            ask_hosts(ev.paths, {0: AskStats()})
        with pytest.raises(RequestRefusedError, match="does not answer now"):
            ask_hosts([tmp_path / "host9.control"], {0: AskStats()})


def raw(path: Path, *parts: bytes) -> bytes:
    """Return what the socket answers to parts that are sent one by one, whatever it reads of them."""
    with socket.socket(socket.AF_UNIX) as connection, short_name(path) as short:
        connection.connect(short)
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        answer = bytearray()
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(1 << 16):
                answer += chunk
        return bytes(answer)


def test_a_command_that_is_too_long_is_refused_and_one_in_parts_is_read(tmp_path: Path) -> None:
    with made(LEAF_SPINE, "srv6") as fabric, commanded(fabric, tmp_path) as ev:
        command = json.dumps(command_message(AskEvs(), 0)).encode() + b"\n"
        assert json.loads(raw(ev.paths[0], command[:5], command[5:])) == {"evs": []}
        too_long = json.loads(raw(ev.paths[0], *[b" " * (1 << 20)] * 5))
        assert too_long == {"error": f"command: a line is longer than {MOST_COMMAND_BYTES} B"}
        many = ProbeEvs((EvOfPeer("10.0.0.1", 1),) * (MOST_COMMAND_BYTES // 8))
        with pytest.raises(RequestRefusedError, match="command: a line is longer than"):
            ask_hosts(ev.paths, {0: many})


def test_a_deadline_holds_for_a_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that come one by one do not extend it."""
    seconds = itertools.count()
    monkeypatch.setattr("weft.traffic.answering_socket.time.monotonic", lambda: next(seconds) / 10)
    server, client = socket.socketpair()
    with server, client:
        client.sendall(b"one line\nand more")
        assert read_line(server, 8, 1.0) == b"one line"

        class OneByOne:
            settimeout = server.settimeout
            received = 0

            def recv(self, _: int) -> bytes:
                self.received += 1
                return b"x"

        slow = OneByOne()
        with pytest.raises(TimeoutError, match="no whole line within 1 s"):
            read_line(cast("socket.socket", slow), 100, 1.0)
        assert slow.received == 9
        client.sendall(b"part")
        client.close()
        with pytest.raises(ConnectionError, match="within a line"):
            read_line(server, 100, 1.0)


@pytest.mark.parametrize("message", [{"value": "x"}, {"value": True}, {"plane": 1.5}, {"peer": 4}, {"link": ["a"]}])
def test_choices_of_another_type_are_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="valid: a "):
        EvChoice.of(message)
