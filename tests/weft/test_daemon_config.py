"""The switch daemon's configuration of a fabric: written as JSON and read back by the daemon's own reader."""

import json

import pytest

from tests.refusals import refused
from weft import topologies
from weft.clocks.real.switch_daemon import daemon_config
from weft.clocks.switch_configs import switch_configs
from weft.scenario import CreditsSection, FabricOptions, FaultsSection, PfcSection, SwitchingSection
from weft.switch.daemon.config import ConfigError, FaultsConfig, parse_config

FABRIC = topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=2, delay_ps=500)


def config_of(**options):
    chosen = FabricOptions(clock="real", **options)
    switches = switch_configs(FABRIC, chosen, frame_bytes=1300)
    return daemon_config(FABRIC, chosen, switches, epoch_ns=5, grpc_address="127.0.0.1:0")


def test_every_switch_and_port_is_there_with_its_link():
    config = config_of(dilation=10.0, seed=3)
    assert (config.epoch_ns, config.dilation, config.seed) == (5, 10.0, 3)
    assert {each.name: each.device_id for each in config.switches} == {
        switch.name: switch.device_id for switch in FABRIC.switches
    }
    for described, switch in zip(config.switches, FABRIC.switches, strict=True):
        for port, spec in zip(described.ports, switch.ports, strict=True):
            assert port.port == spec.number
            assert port.interface == spec.interface
            assert port.rate_bps == spec.link.rate_bps
            assert port.delay_ps == 500
            assert port.host_uplink is spec.peer_is_host
    assert config.internal_links == ()


def test_internal_links_join_switches_without_interfaces():
    config = config_of(links="internal")
    ids = {switch.device_id: switch for switch in FABRIC.switches}
    assert len(config.internal_links) == 4  # two leaves to one spine, in two planes
    for a, a_port, b, b_port in config.internal_links:
        assert ids[a].port(a_port).peer.node == ids[b].name
        assert ids[b].port(b_port).peer.node == ids[a].name
    for described in config.switches:
        for port in described.ports:
            assert (port.interface is not None) is port.host_uplink


def test_faults_are_on_every_link():
    faults = FaultsSection(loss=0.1, duplicate=0.2, delay_probability=0.3, extra_delay=400)
    for switch in config_of(faults=faults).switches:
        for port in switch.ports:
            of_port = FaultsConfig(loss=0.1, duplicate=0.2, delay_probability=0.3, extra_delay_ps=400)
            assert port.faults == of_port
            assert port.uplink_faults == (of_port if port.host_uplink else FaultsConfig())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"links": "internal"},
        {"faults": FaultsSection(loss=0.25)},
        {"pfc": PfcSection(classes=[3])},
        {"credits": CreditsSection(classes=[3, 4]), "switching": SwitchingSection(latency=1000)},
        {"switching": SwitchingSection(depth_unit="packets", time_unit="us")},
    ],
)
def test_the_daemon_reads_what_was_written(options):
    config = config_of(**options)
    assert parse_config(config.to_json()) == config


@pytest.mark.parametrize(
    ("options", "classes"),
    [
        ({}, {}),
        ({"pfc": PfcSection(classes=[3])}, {26: 3, 48: 6}),
        ({"credits": CreditsSection(classes=[3])}, {26: 3, 48: 6}),
    ],
)
def test_flow_control_knows_the_classes_of_frames(options, classes):
    assert all(switch.class_of_dscp == classes for switch in config_of(**options).switches)


@pytest.mark.parametrize("classes", [{64: 3}, {-1: 3}, {26: 8}])
def test_classes_that_cannot_be_are_refused(classes):
    with refused(ConfigError, problem="class_of_dscp"):
        parse_config(json.dumps({"switches": [{"device_id": 1, "name": "s", "class_of_dscp": classes}]}))
