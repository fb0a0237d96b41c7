"""Controllers of users: what their methods see and do, under both clocks, and how their errors end a run."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy
import pytest
from plain_forwarding import TOPOLOGY

from tests.refusals import refused
from weft.clocks.user_controller import ControlledSwitch, Controller, Entry, Member
from weft.controller.counters import Count
from weft.errors import BadInputError
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.scenario.controller import ControllerSection
from weft.traffic.extensions import load_class

HERE = Path(__file__).parent
LEARNING = HERE.parents[1] / "examples" / "learning_switch"
PROBES_P4 = HERE / "programs" / "probes.p4"
in_mininet = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mnexec") is None, reason="needs root and Mininet"),
]
BOTH_CLOCKS = pytest.mark.parametrize("clock", ["virtual", pytest.param("real", marks=in_mininet)])


def chosen(name: str, **parameters: Any) -> ControllerSection:
    return ControllerSection(controller_class=f"{HERE / 'probing.py'}:{name}", parameters=parameters, interval=10**9)


@pytest.fixture
def log() -> Iterator[list[tuple[Any, ...]]]:
    found: list[tuple[Any, ...]] = load_class(f"{HERE / 'probing.py'}:Probing", Controller).log  # type: ignore[attr-defined]
    found.clear()
    yield found
    found.clear()


def links() -> set[tuple[int, int, str, int]]:
    """Both directions of every link between switches, as probes find them."""
    return {
        (switch.device_id, port.number, port.peer.node, port.peer.port)
        for switch in TOPOLOGY.switches
        for port in switch.ports
        if not port.peer_is_host
    }


@BOTH_CLOCKS
def test_a_learning_switch_learns_and_floods_no_more(clock: str) -> None:
    section = ControllerSection(controller_class=f"{LEARNING / 'learning.py'}:LearningSwitch")
    with Fabric(TOPOLOGY, clock=clock, p4=LEARNING / "learning.p4", controller=section) as fabric:  # type: ignore[arg-type]
        fabric.incast("h0", 8192)
        assert fabric.lab.user_controller is not None
        fabric.lab.controller.call(fabric.lab.user_controller.handled())
        before = fabric.summary()
        first = before.drops
        assert first["program: learning.p4:99"] > 0
        assert all(each.copies for each in before.losses), "a flood's copies for the ports by which it came"
        fabric.incast("h0", 8192)
        assert fabric.summary().drops == first, "what is known is flooded no more"
        for switch in TOPOLOGY.switches:
            found = fabric.lab.controller.read(switch.name, [finsy.P4TableEntry("destinations")])
            assert {int(each["address"]) for each in found} == {int(host.nics[0].ipv4.ip) for host in TOPOLOGY.hosts}


@BOTH_CLOCKS
def test_packets_registers_and_counters(clock: str, log: list[tuple[Any, ...]]) -> None:
    with Fabric(TOPOLOGY, clock=clock, p4=PROBES_P4, controller=chosen("Probing")) as fabric:  # type: ignore[arg-type]
        fabric.incast("h0", 4096)
        assert [each for each in log if each[0] == "start"] == [("start", switch.name) for switch in TOPOLOGY.switches]
        probes = [each[1:5] for each in log if each[0] == "probe"]
        assert set(probes) == links()
        assert len(probes) == len(links())
        assert [fabric.read_register(name, "limits", 2) for name in ("p0l0", "p0l1")] == [
            77 + TOPOLOGY.switch(name).device_id for name in ("p0l0", "p0l1")
        ]


def test_links_and_idle_entries_are_told_in_virtual_time(log: list[tuple[Any, ...]]) -> None:
    with Fabric(TOPOLOGY, clock="virtual", p4=PROBES_P4, controller=chosen("Probing", timeout_ns=10**9)) as fabric:
        lab = fabric.lab
        link = next(each for each in TOPOLOGY.links if {each.a.node, each.b.node} == {"p0l1", "p0s0"})
        lab.controller.link_down(link)
        lab.controller.link_up(link)
        lab.controller.call(asyncio.sleep(3.5))
        name = TOPOLOGY.link_name(link)
        assert [each for each in log if each[0] == "link"] == [("link", name, False), ("link", name, True)]
        idle = [each for each in log if each[0] == "idle"]
        addresses = {int(host.nics[0].ipv4.ip) for host in TOPOLOGY.hosts}
        assert {(each[1], each[3]["address"]) for each in idle} == {
            (switch.name, address) for switch in TOPOLOGY.switches for address in addresses
        }
        assert not lab.controller.read("p0l0", [finsy.P4TableEntry("addresses")])


def test_runs_in_virtual_time_repeat_byte_by_byte() -> None:
    scenario = load_scenario(LEARNING / "learning.yaml")
    runs = [run_scenario(scenario.model_copy(update={"clock": "virtual"}).at(scenario.places)) for _ in range(2)]
    assert runs[0].traffic == runs[1].traffic
    assert runs[0].drops == runs[1].drops


class _Script(Controller):
    """Calls methods of a switch in `on_start`, of the first one."""

    did = False

    def on_start(self, switch: ControlledSwitch) -> None:
        if switch.name != "p0l0":
            return
        switch.insert("addresses", {"address": "10.0.0.9"}, "forward", {"port": 1, "mac": "02:00:00:00:00:01"})
        switch.modify("addresses", {"address": "10.0.0.9"}, "drop")
        assert switch.entries("addresses") == [Entry("addresses", {"address": 0x0A000009}, "drop", {}, 0)]
        switch.insert("classes", {"source": ["10.0.0.0", "255.0.0.0"]}, "drop", priority=4)
        for wrong, problem in (
            (
                lambda: switch.insert("addresses", {"address": "10.0.0.9"}, "drop"),
                "there is one with this key already",
            ),
            (lambda: switch.modify("addresses", {"address": 8}, "drop"), "there is none with this key"),
            (lambda: switch.delete("addresses", {"address": 8}), "there is none with this key"),
            (lambda: switch.insert("adresses", {}, "drop"), "unknown table 'adresses'; did you mean"),
            (lambda: switch.read_register("limit", 0), "limit"),
            (lambda: switch.packet_out(b"", port=1), "packet-out"),
        ):
            with pytest.raises(BadInputError, match=problem):
                wrong()
        switch.set_default("addresses", "drop")
        switch.set_multicast_group(3, [1, 2])
        switch.set_multicast_group(3, [1])
        switch.set_clone_session(4, [2])
        switch.delete("classes", {"source": ["10.0.0.0", "255.0.0.0"]}, priority=4)
        type(self).did = True


def test_entries_are_changed_by_names_and_outlive_plans() -> None:
    section = ControllerSection(controller_class=f"{__file__}:_Script")
    with Fabric(TOPOLOGY, clock="virtual", p4=PROBES_P4, controller=section) as fabric:
        assert load_class(f"{__file__}:_Script", Controller).did  # type: ignore[attr-defined]
        controller = fabric.lab.controller
        controller.recover()
        controller.apply()
        (kept,) = controller.read("p0l0", [finsy.P4TableEntry("addresses")])
        assert kept["address"] == 0x0A000009


class _Arrays(Controller):
    """Uses what is no table's entry, of the first switch."""

    did = False

    def on_start(self, switch: ControlledSwitch) -> None:
        if switch.name != "p0l0":
            return
        mac = "02:00:00:00:00:01"
        for number in (1, 2):
            switch.set_member("ways", number, "forward", {"port": number, "mac": mac})
        switch.set_member("ways", 2, "drop")
        assert switch.members("ways") == {
            1: Member("forward", {"port": 1, "mac": 0x020000000001}),
            2: Member("drop", {}),
        }
        switch.set_group("ways", 5, [1])
        switch.set_group("ways", 5, {1: 3, 2: 1})
        assert switch.groups("ways") == {5: {1: 3, 2: 1}}
        switch.insert("routes", {"address": "10.0.0.9"}, group_id=5)
        switch.modify("routes", {"address": "10.0.0.9"}, member_id=1)
        assert switch.entries("routes") == [Entry("routes", {"address": 0x0A000009}, "", {}, member_id=1)]
        with pytest.raises(BadInputError, match="member 1"):
            switch.delete_member("ways", 1)
        switch.delete("routes", {"address": "10.0.0.9"})
        switch.delete_group("ways", 5)
        switch.delete_member("ways", 2)
        with pytest.raises(BadInputError, match="there is none with this key"):
            switch.delete_member("ways", 2)
        assert list(switch.members("ways")) == [1]
        switch.insert("one_shots", {"address": 1}, action_set=[{"action_name": "drop", "weight": 2}])
        rates = {"cir": 5, "cburst": 6, "pir": 7, "pburst": 8}
        switch.insert("hosts", {"address": 1}, "count_host", meter_config=rates)
        (counted,) = switch.entries("hosts")
        assert counted.count == Count(0, 0)
        switch.write_register("limits", None, 3)
        switch.write_register("limits", 2, 4)
        assert switch.read_registers("limits") == [3, 3, 4, 3]
        assert switch.read_meter("rates", 1) is None
        switch.write_meter("rates", 1, **rates)
        assert switch.read_meter("rates", 1) == rates
        switch.reset_counter("seen")
        assert switch.read_counters("seen") == [Count()] * 4
        switch.set_value_set("ip_types", [0x800])
        switch.set_multicast_group(1, [1])
        switch.delete_multicast_group(1)
        for wrong, problem in (
            (lambda: switch.delete_multicast_group(1), "there is none with this key"),
            (lambda: switch.set_group("ways", 1, [9]), "no such member"),
            (lambda: switch.write_meter("rates", 9, **rates), r"index: 9 \(valid: 0 to 3\)"),
            (lambda: switch.read_meter("rate", 1), "unknown meter 'rate'; did you mean 'rates'?"),
        ):
            with pytest.raises(BadInputError, match=problem):
                wrong()
        type(self).did = True


def test_profiles_arrays_and_groups_are_changed_by_names() -> None:
    section = ControllerSection(controller_class=f"{__file__}:_Arrays")
    with Fabric(TOPOLOGY, clock="virtual", p4=PROBES_P4.with_name("choices.p4"), controller=section) as fabric:
        assert load_class(f"{__file__}:_Arrays", Controller).did  # type: ignore[attr-defined]
        controller = fabric.lab.controller
        controller.recover()
        assert controller.apply().entries == 0, "a switch that is read back is as it was"


@BOTH_CLOCKS
def test_timers(clock: str) -> None:
    log = load_class(f"{HERE / 'probing.py'}:Ticking", Controller).log  # type: ignore[attr-defined]
    log.clear()
    with Fabric(TOPOLOGY, clock=clock, p4=PROBES_P4, controller=chosen("Ticking")) as fabric:  # type: ignore[arg-type]
        lab = fabric.lab
        lab.controller.call(lab.operations.clock.sleep_ps(110_000_000))
        assert lab.user_controller is not None
        lab.controller.call(lab.user_controller.handled())
    ticks = [each[1] for each in log if each[0] == "tick"]
    (once,) = (each[1] for each in log if each[0] == "once")
    ((_, later, register),) = (each for each in log if each[0] == "later")
    assert len(ticks) >= 1
    assert all(tick >= 20_000_000 for tick in ticks)
    assert once >= 5_000_000
    assert later >= 7_000_000
    assert 0 < register <= later
    if clock == "virtual":
        assert ticks == [20_000_000 * number for number in range(1, 6)]
        assert (once, later) == (5_000_000, 7_000_000)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("on_start", "LookupError: no idea of <switch p0l0>, raised by"),
        (
            "table",
            "p0l0: insert into adresses: unknown table 'adresses'; did you mean 'addresses'?",
        ),
        ("on_link", "LookupError: no idea of p0l1:3-p0s0:2"),
        # No end of the run, though asyncio's own: passed over, the rest of the controller would be, too.
        ("cancelled", "CancelledError: , raised by"),
        ("at once", "ValueError: more than 10,000 calls without a delay at "),
        ("nothing", "TypeError: None cannot be called (valid: a function"),
    ],
)
def test_what_a_class_raises_ends_the_run_with_its_own_frames(tmp_path: Path, where: str, problem: str) -> None:
    (tmp_path / "s.yaml").write_text(
        f"clock: virtual\np4: {PROBES_P4}\nfabric: {{planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2}}\n"
        f"controller: {{class: {HERE / 'probing.py'}:Careless, parameters: {{where: {where}}}}}\n"
        "events: [{link: p0l1<->p0s0, state: down, at: 10us}]\n"
        "traffic: [{incast: h0, bytes_per_sender: 4KiB}]\n",
        encoding="utf-8",
    )
    with pytest.raises(BadInputError) as raised:
        run_scenario(load_scenario(tmp_path / "s.yaml"))
    message = str(raised.value)
    assert problem in message
    assert "probing.py" in message
    assert "weft/clocks" not in message


def test_a_timer_s_method_that_is_a_coroutine_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        f"clock: virtual\np4: {PROBES_P4}\nfabric: {{planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2}}\n"
        f"controller: {HERE / 'probing.py'}:WaitingForTicks\n"
        "traffic: [{incast: h0, bytes_per_sender: 1MiB}]\n",
        encoding="utf-8",
    )
    with refused(BadInputError, problem="tick is 'async def' (valid"):
        run_scenario(load_scenario(tmp_path / "s.yaml"))


def test_what_a_timer_s_method_raises_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        f"clock: virtual\np4: {PROBES_P4}\nfabric: {{planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2}}\n"
        f"controller: {{class: {HERE / 'probing.py'}:Ticking, parameters: {{fail_at: 20000000}}}}\n"
        "traffic: [{incast: h0, bytes_per_sender: 1MiB}]\n",
        encoding="utf-8",
    )
    with pytest.raises(BadInputError) as raised:
        run_scenario(load_scenario(tmp_path / "s.yaml"))
    message = str(raised.value)
    assert "LookupError: no idea of the time, raised by" in message
    assert "Ticking.tick" in message
    assert "probing.py" in message


@pytest.mark.parametrize(
    ("controller", "problem"),
    [
        (
            "{class: probing.py:Careless, parameters: {where: exit}}",
            "Careless.on_start called sys.exit(0): return",
        ),
        ("script.py:Script", "script.py called sys.exit(3): return"),
        ("probing.py:Waiting", "Waiting.on_start is 'async def' (valid: 'def'"),
    ],
)
def test_a_method_that_exits_or_is_no_plain_function_ends_the_run_with_an_error(
    tmp_path: Path, controller: str, problem: str
) -> None:
    shutil.copy(HERE / "probing.py", tmp_path)
    (tmp_path / "script.py").write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    (tmp_path / "s.yaml").write_text(f"clock: virtual\np4: {PROBES_P4}\ncontroller: {controller}\n", encoding="utf-8")
    with pytest.raises(BadInputError) as raised:
        run_scenario(load_scenario(tmp_path / "s.yaml"))
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("controller", "problem"),
    [
        ("none.py:Class", "controller.class: {folder}/none.py: cannot be read"),
        (
            "probing.py:Probe",
            "has no class 'Probe' (valid: Careless, Probing, Ticking, Waiting, WaitingForTicks)",
        ),
        ("{class: probing.py:Probing, parameters: {time: 3}}", "unexpected keyword argument 'time'"),
        ("{parameters: {time: 3}}", "controller.parameters: they are for a class"),
        ("probing", "'probing' is not a class of yours, path/to/file.py:Class"),
        ("{class: 3}", "controller.class: 3 is not a class of yours"),
    ],
)
def test_classes_are_checked_before_anything_is_built(tmp_path: Path, controller: str, problem: str) -> None:
    shutil.copy(HERE / "probing.py", tmp_path)
    (tmp_path / "s.yaml").write_text(f"clock: virtual\ncontroller: {controller}\n", encoding="utf-8")
    with pytest.raises(BadInputError) as raised:
        run_scenario(load_scenario(tmp_path / "s.yaml"))
    assert problem.format(folder=tmp_path) in str(raised.value)
    assert f"{tmp_path / 's.yaml'}:2: " in str(raised.value)
