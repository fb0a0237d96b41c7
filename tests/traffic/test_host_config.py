"""What an endpoint process is given is what it reads."""

import dataclasses
import json

import pytest

from weft.topologies.int_rates import STANDARD_INT_RATES
from weft.traffic.host_config import HostConfig, NicConfig
from weft.traffic.host_recording import HostRecording
from weft.traffic.messages import MessageError
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
        ),
        dataclasses.replace(NIC, pfc_quanta=9),
    ),
    seed=5,
    mtu_bytes=4096,
    wall_clock_floor_ns=1,
    realtime_priority=10,
    transport=TransportSettings(path="spray", retransmission="selective-repeat", parameters={"a": 1.5}),
    nic_costs=NicCosts(dma_latency_ps=8),
    recording=HostRecording(messages=True, telemetry_from=(1, 2)),
    int_rates_bps=(*STANDARD_INT_RATES[:-1], 123),
)


@pytest.mark.parametrize("config", [PLAIN, FULL])
def test_a_configuration_comes_back_from_json(config):
    assert HostConfig.from_message(json.loads(json.dumps(config.to_message()))) == config


def test_full_has_no_value_left_at_its_default():
    for each in (FULL, FULL.recording, FULL.nic_costs):
        given = {
            field.name
            for field in dataclasses.fields(each)
            if field.default is not dataclasses.MISSING and getattr(each, field.name) != field.default
        }
        assert given, each
    of_nics = [set(vars(nic).items()) - set(vars(NIC).items()) for nic in FULL.nics[1:]]
    named = {name for items in of_nics for name, _ in items}
    optional = {each.name for each in dataclasses.fields(NIC) if each.default is not dataclasses.MISSING}
    assert named == optional


@pytest.mark.parametrize("name", ["name", "rank", "epoch_ns", "nics"])
def test_what_lacks_is_named(name):
    message = PLAIN.to_message()
    del message[name]
    with pytest.raises(MessageError, match=f"field '{name}' is missing"):
        HostConfig.from_message(message)
