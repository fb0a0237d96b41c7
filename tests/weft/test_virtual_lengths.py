"""`data: lengths`: packets that carry the number of their payload bytes only."""

import pytest
from scapy.utils import rdpcap

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.run.runner import Captures, run_scenario
from weft.scenario import parse_scenario

FABRIC = {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 3, "queue_capacity": "64KiB"}
COUNTED = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 1}
ICRC_BYTES = 4


def run(data, captures=None, **options):
    scenario = {
        "clock": "virtual",
        "seed": 5,
        "fabric": FABRIC,
        "traffic": [
            {"permutation": "40KiB", "data": data},
            {"incast": "h1", "bytes_per_sender": "50KiB", "plane": 1, "data": data},
        ],
    }
    return run_scenario(parse_scenario(scenario | options), captures=captures)


@pytest.mark.parametrize(
    "options",
    [{}, {"faults": {"loss": 0.01, "duplicate": 0.01}}, {"ip_version": 6}, {"mtu": 4096}],
    ids=["plain", "faults", "ipv6", "4096"],
)
def test_results_are_those_of_runs_with_bytes(options):
    of_bytes, of_lengths = run("zeros", **options), run("lengths", **options)
    assert of_lengths.as_dict() == of_bytes.as_dict()
    assert of_bytes.planes[1].tail_drops > 0


@pytest.mark.parametrize("mtu_bytes", [1024, 4096])
def test_switches_count_the_bytes_that_are_not_written_out(mtu_bytes):
    counted = []
    for data in ("zeros", "lengths"):
        with Fabric(topologies.leaf_spine(**COUNTED), clock="virtual", mtu_bytes=mtu_bytes) as fabric:
            fabric.permutation(50_000, data=data)
            switches = [switch.name for switch in fabric.topology.switches]
            counted.append(
                [
                    *(fabric.read_counters(name, each) for name in switches for each in ("port_sent", "port_received")),
                    *(fabric.read_direct_counter(name, "ipv4_counter") for name in switches),
                ]
            )
    assert counted[0] == counted[1]
    assert counted[0][0][1].bytes > 50_000


@pytest.mark.slow
def test_captures_hold_the_same_frames_but_for_the_icrc(tmp_path):
    frames = {}
    for data in ("zeros", "lengths"):
        run(data, Captures(tmp_path / data, ("p1l0",)))
        frames[data] = {
            path.name: [(packet.time, bytes(packet)) for packet in rdpcap(str(path))]
            for path in sorted((tmp_path / data).iterdir())
        }
    assert frames["zeros"].keys() == frames["lengths"].keys()
    zeroed = 0
    for name, real in frames["zeros"].items():
        for (time, frame), (length_time, length_frame) in zip(real, frames["lengths"][name], strict=True):
            assert (time, frame[:-ICRC_BYTES]) == (length_time, length_frame[:-ICRC_BYTES])
            zeroed += length_frame[-ICRC_BYTES:] == bytes(ICRC_BYTES)
    assert zeroed > 0


def test_unknown_data_is_refused():
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with (
        Fabric(topology, clock="virtual") as fabric,
        refused(BadInputError, problem="did you mean 'lengths'"),
    ):
        fabric.permutation(100, data="length")
