"""What `seed` and `hash_seed` draw of paths: bytes of uplinks under ECMP, and the ports that hosts choose."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from tests.hosts.ip_hosts import RATE_BPS
from weft import Fabric
from weft.controller.lab import lab_from_state
from weft.controller.links import routes_only
from weft.engine import Engine, IpStack, Link, Nic, TransmitPort
from weft.errors import BadInputError
from weft.scenario.keywords import fabric_options
from weft.topologies import leaf_spine
from weft.traffic.patterns import Flow

SIZE_BYTES = 16_384
FABRIC = leaf_spine(planes=1, leaves=2, spines=8, hosts_per_leaf=8, host_rate_bps=100e9)
FLOWS = [Flow(source, 8 + source, SIZE_BYTES) for source in range(8)]
UPLINKS = range(9, 17)


@cache
def uplinks(seed: int, hash_seed: int | None = None, ip_version: int = 4) -> tuple[int, ...]:
    """Return how many of the flows take each uplink of the first leaf; the flows are the same for every seed."""
    with Fabric(FABRIC, clock="virtual", seed=seed, hash_seed=hash_seed, ip_version=ip_version) as fabric:  # type: ignore[arg-type]
        fabric.run_flows("flows", FLOWS)
        ports = fabric.lab.controller.read_counters()["p0l0"].ports
        return tuple(ports[port].sent.bytes // SIZE_BYTES if port in ports else 0 for port in UPLINKS)


@pytest.mark.parametrize("ip_version", [4, 6])
def test_each_seed_has_other_collisions(ip_version: int) -> None:
    found = [uplinks(seed, None, ip_version) for seed in range(1, 5)]
    assert all(sum(each) == len(FLOWS) for each in found)
    assert len(set(found)) == 4
    assert len({max(each) for each in found}) > 1, "eight flows on eight uplinks collide more or less"


def test_a_hash_seed_keeps_the_paths() -> None:
    assert uplinks(2, 1) == uplinks(3, 1) == uplinks(1)
    assert uplinks(1, 2) == uplinks(2)


def nic(engine: Engine, entropy_seed: int, name: str = "h1") -> Nic:
    made = Nic(engine, name, entropy_seed=entropy_seed)
    port = TransmitPort(engine, Link(engine), rate_bps=RATE_BPS)
    made.add_port(port, mac="02:00:00:00:00:01", addresses=["10.0.0.1"])
    return made


def test_ephemeral_ports_begin_where_the_seed_says() -> None:
    engine = Engine(seed=1)
    stacks = [IpStack(nic(engine, seed, name)) for seed in (1, 2) for name in ("h1", "h2")]
    firsts = [each.ephemeral_port(0) for each in stacks]
    assert len(set(firsts)) == 4
    for stack in stacks:
        assert sorted(map(stack.ephemeral_port, range(2**14))) == list(range(49152, 65536))


def test_the_lab_s_state_has_the_seed_for_other_controllers(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    state = {"grpc": {"p0l0": ["unix:/tmp/none", 1]}, "fabric": dict(FABRIC.parameters), "hash_seed": 7}
    path.write_text(json.dumps(state))
    assert routes_only(lab_from_state(path)).hash_seed == 7


def test_what_is_no_seed_is_refused() -> None:
    with pytest.raises(BadInputError, match="hash_seed"):
        fabric_options(hash_seed=-1)
