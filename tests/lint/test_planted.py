"""A misconfiguration for each rule, planted in a clean scenario: its rule finds it, and the values it names mend it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from weft.run.lint import RULES
from weft.run.lint.checked import REFUSED, findings_in
from weft.run.lint.rule import Finding
from weft.scenario import parse_scenario
from weft.scenario.dotted import set_at

CLEAN: dict[str, Any] = {
    "clock": "virtual",
    "fabric": {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 8, "host_rate": "100Gb/s", "delay": "1us"},
    "traffic": [{"permutation": "64KiB", "data": "lengths"}],
}
DCQCN = {"transport.congestion_control": "dcqcn"}
PFC = {"pfc.classes": [3]}
WATCHDOG = PFC | {"pfc.xoff": "64KiB", "pfc.watchdog": {"detection_time": "200us", "restoration_time": "200us"}}
STORM = {"host": "h1", "state": "storming", "at": "10us"}
TRIMMING = {"transport.protocol": "mrc", "int": False, "trimming.classes": [3]}
SPRAY = {"transport.path": "spray", "transport.retransmission": "selective-repeat"}
SCALE_UP = {"fabric": {"kind": "scale_up", "accelerators": 8, "switches": 2}, "credits": {"classes": [3]}}
INCAST = {"traffic": [{"incast": "h0", "bytes_per_sender": "256KiB", "data": "lengths"}]}


def thresholds(kmin: str, kmax: str) -> dict[str, Any]:
    return {"ecn.kmin": kmin, "ecn.kmax": kmax, "ecn.pmax": 0.2}


@dataclass(frozen=True)
class Planted:
    """A clean scenario's keys, those that make it wrong, the key that the finding names, and words of the finding."""

    rule: str
    wrong: dict[str, Any]
    key: str
    words: tuple[str, ...] = ()
    clean: dict[str, Any] = field(default_factory=dict)


PLANTED = [
    Planted("ack-interval", {"transport.ack_interval": 16}, "transport.ack_interval", ("swift",),
            {"transport.congestion_control": "swift"}),
    Planted("cnp-interval", {"transport.cnp_interval": "1ms"}, "transport.cnp_interval", ("300 µs",), DCQCN),
    Planted("delay-target", {"transport.parameters": {"base_target": "1us", "flow_scaling_range": "1ns"}},
            "transport.parameters.base_target", ("swift slows down",), {"transport.congestion_control": "swift"}),
    Planted("delay-target", {"transport.parameters": {"low_threshold": "1us"}}, "transport.parameters.low_threshold",
            ("timely slows down",), {"transport.congestion_control": "timely"}),
    Planted("ecn-after-pause", {"pfc.xoff": "500KiB"}, "pfc.xoff", ("512000 B", "1600000 B"),
            DCQCN | PFC | {"buffer.capacity": "64MiB"}),
    Planted("ecn-certain-mark", {"ecn.kmax": "8MiB"}, "ecn.kmax", ("5242880 B",),
            DCQCN | thresholds("100KB", "400KB")),
    Planted("ecn-ignored", thresholds("100KB", "400KB"), "ecn", ("fixed-window",)),
    Planted("ecn-marks-idle", {"ecn.kmin": "500B"}, "ecn.kmin", ("500 B",), DCQCN | thresholds("100KB", "400KB")),
    Planted("ecn-unreached", {"fabric.queue_capacity": "256KiB"}, "ecn", ("262144 B", "400000 B"), DCQCN),
    Planted("ecn-unreached", {"transport.congestion_control": "dctcp"}, "ecn", ("262144 B",),
            {"fabric.queue_capacity": "256KiB"}),
    Planted("event-elsewhere", {"events": [{"plane": 1, "state": "down", "at": "1us"}]}, "events[0].plane",
            ("plane 0", "plane 1"), INCAST),
    Planted("flowlet-gap", {"routing.flowlet_gap": "10ns"}, "routing.flowlet_gap", ("10 ns",),
            {"routing.load_balancing": "flowlet"}),
    Planted("host-slots", {"host.nics": [{"at": "numa0", "pcie": "3x8"}]}, "host",
            ("numa0->NIC0", "57.6", "200 Gb/s"), {"host": {"numa": [{}], "nics": [{"at": "numa0", "pcie": "6x16"}]}}),
    Planted("lossless-class", {"pfc.classes": [5]}, "pfc.classes", ("[5]",)),
    Planted("observe-interval", {"observe.interval": "1us"}, "observe.interval"),
    Planted("path-key-unused", {"transport.spray_paths": 4}, "transport.spray_paths", ("path: flow",)),
    Planted("path-key-unused", {"transport.flowlet_gap": "1us"}, "transport.flowlet_gap", ("path: flow",)),
    Planted("pfc-headroom", {"pfc.headroom": "8KiB"}, "pfc.headroom", ("8192 B", "27", "1 µs"), PFC),
    Planted("pfc-hysteresis", {"pfc.hysteresis": "64KiB"}, "pfc.hysteresis", (), PFC | {"pfc.xoff": "64KiB"}),
    Planted("pfc-pause-short", {"pfc.pause_quanta": 20}, "pfc.pause_quanta", ("1280 B",), PFC),
    Planted("pfc-xoff-frame", {"pfc.xoff": "512B"}, "pfc.xoff", ("512 B",), PFC),
    Planted("pfc-xoff-memory", {"pfc.xoff": "64MiB"}, "pfc.xoff", ("67108864 B",), PFC),
    Planted("quantum-unused", {"scheduling.quantum": {3: "8KiB", 4: "8KiB"}}, "scheduling.quantum", ("class 4",)),
    Planted("queue-frames", {"fabric.queue_capacity": "2000B"}, "fabric.queue_capacity", ("2000 B",)),
    Planted("rate-above-port", {"transport.parameters": {"line_rate": "400Gb/s"}}, "transport.parameters.line_rate",
            ("400 Gb/s", "100 Gb/s"), DCQCN),
    Planted("reordering-go-back-n", {"routing.load_balancing": "random"}, "routing.load_balancing", ("random",)),
    Planted("reordering-window", {"transport.reordering_window": "1ns"}, "transport.reordering_window", ("1 ns",),
            SPRAY),
    Planted("round-trip-parameter", {"transport.parameters": {"round_trip": "100ns"}},
            "transport.parameters.round_trip", ("100 ns",), {"transport.congestion_control": "hpcc"}),
    Planted("scale-up-links", {"credits": {}}, "fabric.kind", ("credits",), SCALE_UP),
    Planted("scale-up-links", {"faults.bit_error_rate": 1e-7}, "faults", ("send again",), SCALE_UP),
    Planted("segment-messages", {"fidelity.messages": "64KiB"}, "fidelity.messages"),
    Planted("slots", {"slots": 8}, "slots", ("8 slots",),
            {"traffic": [{"collective": "allreduce", "algorithms": ["in-network"], "sizes": ["64KiB"]}]}),
    Planted("timeout-queue", {"transport.retransmission_timeout": "100us"}, "transport.retransmission_timeout",
            ("full queue",)),
    Planted("timeout-round-trip", {"transport.retransmission_timeout": "1us"}, "transport.retransmission_timeout",
            ("idle path",)),
    Planted("trim-queue", {"trimming.queue": 2}, "trimming.queue", ("class 3",), TRIMMING),
    Planted("trim-queue", {"scheduling.quantum": {3: "8KiB", 6: "8KiB"}}, "trimming.queue", ("quantum",), TRIMMING),
    Planted("trim-room", {"trimming.reserved": 0}, "trimming.reserved", ("0 B", "p0l0:1"), TRIMMING),
    Planted("trim-room", {"buffer.alpha": {6: 0.0001}}, "buffer.reserved", ("p0l0:1",),
            TRIMMING | {"buffer.capacity": "1MiB"}),
    Planted("trim-size", {"trimming.size": "2KiB"}, "trimming.size", ("2048 B",), TRIMMING),
    Planted("trim-size", {"trimming.size": "64B"}, "trimming.size", ("64 B", "78 B"), TRIMMING),
    Planted("trim-unanswered", {"trimming.classes": [3]}, "trimming.classes", ("protocol: rc",)),
    Planted("watchdog-fast", {"pfc.watchdog.detection_time": "2us"}, "pfc.watchdog.detection_time", ("2 µs",),
            WATCHDOG),
    Planted("watchdog-misses-storm", {"events": [STORM | {"until": "20us"}]}, "events[0].until", ("10 µs", "200 µs"),
            WATCHDOG),
    Planted("watchdog-slow", {"pfc.watchdog": {}}, "pfc.watchdog.detection_time", ("200 ms",), PFC),
    Planted("window-incast", {"transport.parameters": {"window": "1MiB"}}, "transport.parameters.window",
            ("15 senders",), INCAST | {"fabric.queue_capacity": "512KiB"}),
]  # fmt: skip

REFUSALS = {
    "thresholds the wrong way round": (DCQCN | thresholds("400KB", "100KB"), "must be above kmin"),
    "telemetry that hpcc needs and packets do not carry": (
        {"transport.congestion_control": "hpcc", "int": False},
        "follows what INT reports",
    ),
    "telemetry that powertcp needs and packets do not carry": (
        {"transport.congestion_control": "powertcp", "int": False},
        "follows what INT reports",
    ),
    "headroom that memory does not hold": (PFC | {"pfc.headroom": "16MiB"}, "leave nothing to share"),
    "buffers that wait for each other in a ring": (
        PFC | {"fabric": {"kind": "torus", "shape": [5, 5], "planes": 1, "hosts_per_leaf": 1}},
        "deadlock",
    ),
    "spraying with go-back-N": ({"transport.path": "spray"}, "selective-repeat"),
    "data in the class of acknowledgements": ({"scheduling.classes": [6]}, "valid: 0 to 5"),
    "trimming of a class that PFC keeps from losses": (PFC | {"trimming.classes": [3]}, "refuse nothing to trim"),
    "a PFC watchdog without PFC": ({"pfc.watchdog": {}}, "which classes"),
    "a storm of pauses without PFC": ({"events": [STORM]}, "links have no PFC"),
    "a queue below a frame": ({"mtu": 4096, "fabric.queue_capacity": "2000B"}, "never holds a frame"),
}


def scenario_with(*changes: dict[str, Any]) -> dict[str, Any]:
    tree = copy.deepcopy(CLEAN)
    for change in changes:
        for key, value in change.items():
            set_at(tree, key, copy.deepcopy(value))
    return tree


def found_in(tree: dict[str, Any]) -> list[Finding]:
    return findings_in(lambda: parse_scenario(copy.deepcopy(tree), units_required=True))


def test_a_clean_scenario_has_no_finding() -> None:
    assert found_in(CLEAN) == []


def test_every_rule_is_planted() -> None:
    assert {each.rule for each in PLANTED} == set(RULES)
    assert len(RULES) >= 20


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: f"{each.rule}: {each.key}")
def test_a_planted_misconfiguration_is_named_and_mended_by_the_values_named(planted: Planted) -> None:
    assert found_in(scenario_with(planted.clean)) == []
    wrong = scenario_with(planted.clean, planted.wrong)
    (finding,) = found_in(wrong)
    assert (finding.rule, finding.key) == (planted.rule, planted.key)
    assert all(word in finding.consequence for word in planted.words), finding.consequence
    assert finding.settings
    for key, value in finding.settings.items():
        set_at(wrong, key, value)
    assert found_in(wrong) == []


@pytest.mark.parametrize(("transport", "pmax"), [(DCQCN, 0.2), ({"transport.protocol": "mrc", "int": False}, 1.0)])
def test_thresholds_keep_the_probability_of_the_congestion_control(transport: dict[str, Any], pmax: float) -> None:
    found = {each.rule: each for each in found_in(scenario_with(transport, PFC, {"pfc.xoff": "40KiB"}))}
    assert found["ecn-after-pause"].settings["ecn.pmax"] == pmax


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_run_refuses_is_a_finding(name: str) -> None:
    wrong, words = REFUSALS[name]
    (finding,) = found_in(scenario_with(wrong))
    assert finding.rule == REFUSED
    assert words in finding.sentence


def test_findings_do_not_hide_each_other() -> None:
    together = [each for each in PLANTED if each.rule in _WITHOUT_EACH_OTHER]
    found = found_in(scenario_with(*(each.clean for each in together), *(each.wrong for each in together)))
    assert {each.rule for each in found} >= _WITHOUT_EACH_OTHER


_WITHOUT_EACH_OTHER = {
    "cnp-interval",
    "ecn-after-pause",
    "observe-interval",
    "path-key-unused",
    "pfc-headroom",
    "pfc-pause-short",
    "quantum-unused",
    "segment-messages",
    "timeout-round-trip",
}
"""Rules that one scenario can break together."""
