"""A small scenario for each key of the schema, and values that every key must either accept or refuse."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from weft.paths import ROOT
from weft.quantities.definitions import Quantity
from weft.scenario.dotted import set_at
from weft.scenario.schema import Key, SectionOfKeys, sections

FABRIC = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "host_rate": "100Gb/s"}
FABRICS: dict[str, Any] = {
    "leaf_spine": FABRIC,
    "graph": {
        "planes": 1,
        "switches": [{"role": "leaf"}, {"role": "spine"}],
        "hosts": [{"on": "l0", "count": 2}],
        "links": [{"ends": "l0<->s0"}],
    },
    "scale_up": {"kind": "scale_up", "accelerators": 4, "switches": 1},
}
WITH_CIRCUITS = {
    "kind": "optical_core",
    "planes": 1,
    "leaves": 4,
    "hosts_per_leaf": 1,
    "matchings": {"a": [0, 1], "b": [0, 2]},
}
TRAFFIC: dict[str, Any] = {
    "exec": {"exec": {"h0": "true"}},
    "collective": {"collective": "allreduce", "algorithms": ["ring"], "sizes": [64]},
    "training_step": {
        "training_step": "data-parallel",
        "algorithms": ["ring"],
        "layers": [{"gradients": 64}],
    },
    "incast": {"incast": "h0", "bytes_per_sender": 64},
    "permutation": {"permutation": 64},
    "workload": {"workload": {"flow_sizes": "websearch", "load": 0.3, "duration": "50us"}},
    "circuits": {"circuits": "b"},
    "together": {"together": [{"permutation": 64}, {"incast": "h0", "at": "1us"}]},
    "flow_list": {"flow_list": str(ROOT / "examples" / "traces" / "flows.csv")},
    "trace": {"trace": str(ROOT / "examples" / "traces" / "pair.goal")},
    "model": {
        "model": {
            "layers": 2,
            "hidden": 64,
            "heads": 2,
            "feed_forward": 64,
            "vocabulary": 100,
            "sequence": 16,
            "experts": {"count": 4, "top_k": 2, "feed_forward": 32},
            "latent_attention": {
                "query_rank": 16,
                "kv_rank": 16,
                "head": 16,
                "rotary_head": 16,
                "value_head": 16,
            },
        },
    },
    "storage": {"storage": [3], "access": {"blocks": 2}},
    "tcp": {"tcp": [{"flow": "h0->h1", "size": 64}], "congestion_control": "dctcp"},
    "inference": {
        "inference": {
            "model": {
                "layers": 2,
                "hidden": 64,
                "heads": 2,
                "feed_forward": 64,
                "vocabulary": 100,
                "sequence": 16,
                "experts": {"count": 4, "top_k": 2, "feed_forward": 32},
                "latent_attention": {
                    "query_rank": 16,
                    "kv_rank": 16,
                    "head": 16,
                    "rotary_head": 16,
                    "value_head": 16,
                },
            },
            "requests": {
                "rate": 100,
                "count": 2,
                "prompt": {"median": 8},
                "output": {"median": 2},
                "prefix": {"share": 0.5, "tokens": 4},
            },
            "slo": {"first_token": "1s", "per_token": "1s"},
        },
    },
    "parameter_server": {
        "parameter_server": 1,
        "workers": 1,
        "mlp": {"hidden": 4, "batch": 4},
        "mode": "asynchronous",
        "compute": "1us",
    },
    "training_run": {"training_run": "digits", "mlp": {"hidden": 4, "batch": 4}, "algorithms": ["ring"]},
    "remote_memory": {"remote_memory": [3], "reads": 2},
    "barrier": {"barrier": 2, "algorithms": ["dissemination"]},
    "counter": {"counter": 2},
    "parameter_store": {"parameter_store": 1, "requests": 2},
    "rdma": {
        "rdma": {
            "h0": str(ROOT / "examples" / "rdma_ping.py") + ":server",
            "h1": str(ROOT / "examples" / "rdma_ping.py") + ":client",
        }
    },
    "pattern": {"pattern": str(ROOT / "examples" / "shuffle.py") + ":Shuffle"},
    "ping": {"ping": ["h0->h1"], "count": 1},
    "traceroute": {"traceroute": ["h0->h1"], "hops": 2, "probes": 1},
    "udp": {
        "udp": ["h0->h1"],
        "rate": "1Gb/s",
        "duration": "20us",
        "bursts": {"on": "5us", "off": "5us"},
    },
    "script": {
        "script": {"h0": str(ROOT / "examples" / "plain_hosts.py") + ":Answerer"},
        "duration": "1us",
    },
    "replay": {"replay": str(ROOT / "examples" / "ping.pcap"), "host": "h0"},
}
HOST = {
    "numa": [{}],
    "switches": [{"name": "sw", "at": "numa0"}],
    "accelerators": [{"at": "numa0"}],
    "nics": [{"at": "sw"}],
}
# What a key needs beside it to mean something.
BESIDE: dict[str, dict[str, Any]] = {
    "faults.extra_delay": {"faults.delay_probability": 0.5},
    "faults.delay_probability": {"faults.extra_delay": "1us"},
    "faults.links[].extra_delay": {"faults.links[0].delay_probability": 0.5},
    "faults.links[].delay_probability": {"faults.links[0].extra_delay": "1us"},
    "buffer.alpha": {"buffer.capacity": "1MB"},
    "buffer.reserved": {"buffer.capacity": "1MB"},
    "ecn.kmin": {"ecn.kmax": "2MB", "ecn.pmax": 0.2},
    "ecn.kmax": {"ecn.kmin": "2KB", "ecn.pmax": 0.2},
    "ecn.pmax": {"ecn.kmin": "2KB", "ecn.kmax": "2MB"},
    "transport.spray_paths": {"transport.path": "spray", "transport.retransmission": "selective-repeat"},
    "transport.flowlet_gap": {"transport.path": "flowlet", "transport.retransmission": "selective-repeat"},
    "routing.flowlet_gap": {"routing.load_balancing": "flowlet"},
    "routing.adaptive_unit": {"routing.load_balancing": "adaptive"},
    "routing.hysteresis": {"routing.load_balancing": "adaptive"},
    "routing.depth_lifetime": {"routing.load_balancing": "adaptive"},
    "fabric.core_rate": {"fabric.pods": 2, "fabric.spines": 1},
    "fabric.cores_per_spine": {"fabric.pods": 2, "fabric.spines": 1},
    "cluster.failures[].stall": {"cluster.failures[0].effect": "stall"},
    "cluster.failures[].speed": {"cluster.failures[0].effect": "slow"},
    "cluster.failures[].noticed_after": {"cluster.failures[0].effect": "corrupt"},
    "schedule.nodes": {"schedule.topology": "topology.yaml"},
    "schedule.run_time.median": {"schedule.run_time.mean": "36500d"},
    "schedule.sizes[].run_time.median": {"schedule.sizes[0].run_time.mean": "36500d"},
    "fabric.rail_optimised": {"fabric.ranks_per_host": 2},
}
WITHIN: dict[str, dict[str, Any]] = {
    "trimming": {"trimming": {"classes": [3]}},
    "pfc": {"pfc": {"classes": [3]}},
    "pfc.watchdog": {"pfc": {"classes": [3], "watchdog": {}}},
    "credits": {"credits": {"classes": [3]}},
    "link_retry": {"link_retry": {"links": ["*<->*"]}},
    "faults.links[]": {"faults": {"links": [{"link": "h0<->p0l0"}]}},
    "faults.hosts[]": {"faults": {"hosts": [{"host": "h0", "compute": 2}]}},
    "schedule": {"schedule": {"sizes": [{"accelerators": 1}]}},
    "schedule.sizes[]": {"schedule": {"sizes": [{"accelerators": 1}]}},
    "schedule.sizes[].run_time": {"schedule": {"sizes": [{"accelerators": 1, "run_time": {}}]}},
    "schedule.preemption": {"schedule": {"urgent": 0.5, "preemption": {}}},
    "schedule.slowdown.spread[]": {"schedule": {"slowdown": {"spread": [{"leaves": 2, "factor": 2}]}}},
    "cluster.failures[]": {"cluster": {"failures": [{"mtbf": "9d"}]}},
    "events[]": {"events": [{"link": "h0<->p0l0", "state": "down", "at": "1us"}]},
    "circuits.schedule[]": {
        "fabric": WITH_CIRCUITS,
        "circuits": {"schedule": [{"at": "1us", "configuration": "b"}]},
    },
    "telemetry.watch[]": {"telemetry": {"watch": [{}]}},
    "control.outages[]": {"control": {"outages": [{"at": "1us", "until": "2us"}]}},
    "host": {"host": HOST},
    "host.numa[]": {"host": HOST},
    "host.switches[]": {"host": HOST},
    "host.accelerators[]": {"host": HOST},
    "host.nics[]": {"host": HOST},
    "host.staging": {"host": HOST},
    "traffic[] (circuits)": {"fabric": WITH_CIRCUITS},
    "fabric.scale_up": {"fabric": {**FABRIC, "hosts_per_leaf": 1, "ranks_per_host": 2, "scale_up": {}}},
}
WRONG_VALUES: list[Any] = [
    10**30, -(10**30), -1, 0, 1, 2**31, 2**63, 1e308, -1.5, float("nan"), float("inf"), "", "x", "9" * 5000,
    "9" * 5000 + "ns", "10000000s", "99999999Tb/s", "99999999GB", "2024-99-99", True, None, [], {}, [1], {"a": 1},
    {3: 1}, {3: 10**40}, [10**30], [[]], "h0:99999999999999999999", "p0l0:1", "a->b", "h0->h1", "\0", "é" * 300, b"x",
]  # fmt: skip


def all_keys() -> list[tuple[SectionOfKeys, Key]]:
    """Return every key of the schema with its section."""
    return [(section, key) for section in sections() for key in section.keys]


def tree_with(section: SectionOfKeys, key: Key, value: Any) -> tuple[dict[str, Any], str]:
    """Return a scenario that gives a key this value, and the key's path in it."""
    tree: dict[str, Any] = {"clock": "virtual", "fabric": FABRIC, "traffic": [TRAFFIC["permutation"]]}
    tree = copy.deepcopy(tree | WITHIN.get(section.path, {}))
    place = key.path
    if place.startswith("traffic[]"):
        kind = place[place.index("(") + 1 : place.index(")")]
        tree["traffic"] = [copy.deepcopy(TRAFFIC[kind])]
        place = place.replace(f" ({kind})", "")
    if place.startswith("fabric ("):
        kind = place[place.index("(") + 1 : place.index(")")]
        place = place.replace(f" ({kind})", "")
        if section.path not in WITHIN:
            tree["fabric"] = copy.deepcopy(FABRICS.get(kind, {"kind": kind, "planes": 1}))
    plain, place = place, place.replace("[]", "[0]")
    for beside, needed in BESIDE.get(plain, {}).items():
        set_at(tree, beside, needed)
    set_at(tree, place, copy.deepcopy(value))
    return tree, place


def quantities_of(key: Key) -> list[Quantity]:
    """Return the quantities that are valid values of a key itself; those within a mapping are left out."""
    return list(_quantities(key.field.annotation, key.field.metadata))


def _quantities(annotation: Any, metadata: Sequence[Any] = ()) -> Iterator[Quantity]:
    yield from (each for each in metadata if isinstance(each, Quantity))
    if hasattr(annotation, "__metadata__"):
        yield from _quantities(annotation.__origin__, annotation.__metadata__)
    elif get_origin(annotation) is not dict:
        for each in get_args(annotation):
            yield from _quantities(each)


def example_file(directory: Path, text: str) -> Path:
    """Write a scenario file and return its path."""
    path = directory / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    return path
