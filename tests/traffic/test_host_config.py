"""What an endpoint process is given is what it reads."""

import dataclasses
import json

import pytest

from tests.refusals import refused
from weft.topologies.int_rates import STANDARD_INT_RATES
from weft.traffic.host_config import HostConfig, HostRecording, NicConfig, ScaleUpConfig
from weft.traffic.messages import MessageError, as_message, read_message
from weft.traffic.protocols import ProtocolSettings
from weft.traffic.transport_settings import CreditSettings, NicCosts, TransportSettings

NIC = NicConfig("eth0", "02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", 10**9, 10**6)
PLAIN = HostConfig("h0", 0, epoch_ns=0, dilation=1.0, nics=(NIC,))
FULL = HostConfig(
    "h3",
    3,
    epoch_ns=12,
    dilation=2.5,
    nics=(
        NIC,
        dataclasses.replace(
            NIC,
            ipv6="fd00::1",
            paced=False,
            nearest_round_trip_ps=7,
            nearest_hops=1,
            hop_round_trip_ps=3,
            credits=CreditSettings((3, 4), 65536, 1300),
            class_of_dscp={26: 3, 32: 4},
            quantum_bytes=(0, 0, 0, 9000, 64, 0, 0, 0),
        ),
        dataclasses.replace(NIC, pfc_quanta=9),
    ),
    seed=5,
    mtu_bytes=4096,
    wall_clock_floor_ns=1,
    realtime_priority=10,
    transport=TransportSettings(path="spray", retransmission="selective-repeat", parameters={"a": 1.5}),
    nic_costs=NicCosts(dma_latency=8),
    protocols=ProtocolSettings(ll_latency=7, ll_up_to=4096),
    recording=HostRecording(messages=True, telemetry_from=(1, 2)),
    int_rates_bps=(*STANDARD_INT_RATES[:-1], 123),
    scale_up=ScaleUpConfig((3, 7), 10**12, 5, {7: 11}),
    metrics_socket="/tmp/h3.metrics",
    control_socket="/tmp/h3.control",
    verbs_device="/tmp/h3/class/infiniband/weft0",
    counters_socket="/tmp/h3.counters",
    plane_addresses=(("10.0.0.1", "10.1.0.1"), ("fd00::1", "fd01::1")),
    verbs_socket="/tmp/h3.verbs",
    verbs_listener=9,
    compute_scale=1.25,
)


@pytest.mark.parametrize("config", [PLAIN, FULL])
def test_a_configuration_comes_back_from_json(config):
    assert read_message(HostConfig, json.loads(json.dumps(as_message(config)))) == config


def test_full_has_no_value_left_at_its_default():
    for each in (FULL, FULL.recording, FULL.nic_costs):
        given = {
            field.name
            for field in dataclasses.fields(each)
            if field.default is not dataclasses.MISSING and getattr(each, field.name) != field.default
        }
        assert given, each
    named = {name for nic in FULL.nics[1:] for name, value in vars(nic).items() if value != getattr(NIC, name)}
    optional = {
        each.name for each in dataclasses.fields(NIC) if not each.default is each.default_factory is dataclasses.MISSING
    }
    assert named == optional


@pytest.mark.parametrize("name", ["name", "rank", "epoch_ns", "nics"])
def test_what_lacks_is_named(name):
    message = as_message(PLAIN)
    del message[name]
    with pytest.raises(MessageError, match=f"field '{name}' is missing"):
        read_message(HostConfig, message)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("rank",), "3", {"valid": "a whole number", "problem": "field 'rank' is '3'"}),
        (("dilation",), True, {"valid": "a number", "problem": "field 'dilation' is True"}),
        (
            ("speed",),
            1,
            {
                "valid": (
                    "name, rank, epoch_ns, nics, dilation, seed, entropy_seed, mtu_bytes, "
                    "wall_clock_floor_ns, realtime_priority, transport, paths, segments, nic_costs, "
                    "protocols, "
                    "recording, int_rates_bps, scale_up, metrics_socket, control_socket, "
                    "verbs_socket, verbs_listener, verbs_device, counters_socket, plane_addresses, "
                    "compute_scale"
                ),
                "problem": "field 'speed' is unknown",
            },
        ),
        (("nics", 1, "credits", "classes"), [3, None], {"valid": "a whole number", "problem": "field"}),
        (("nics", 2, "mac"), 5, {"valid": "text", "problem": "field 'nics[2].mac' is 5"}),
        (("int_rates_bps",), [1, 2], {"problem": "field 'int_rates_bps' has 2"}),
        (
            ("transport", "retransmission"),
            "never",
            {"valid": "go-back-n, selective-repeat", "problem": "field"},
        ),
        (("recording", "telemetry_from"), {}, {"valid": "a list", "problem": "field"}),
    ],
)
def test_what_is_wrong_is_named_with_what_is_valid(place, value, message):
    tree = as_message(FULL)
    *above, last = place
    section = tree
    for key in above:
        section = section[key]
    section[last] = value
    with refused(MessageError, **message):
        read_message(HostConfig, tree)


def test_addresses_may_have_their_prefix_length():
    message = as_message(PLAIN)
    message["nics"][0] |= {"ipv4": "10.0.0.7/24", "ipv6": "fd00::7/64"}
    (nic,) = read_message(HostConfig, message).nics
    assert (nic.ipv4, nic.ipv6) == ("10.0.0.7", "fd00::7")
