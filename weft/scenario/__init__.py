"""Scenario files: what fabric to build, which faults to inject, which traffic to run.

A scenario is YAML; every key is checked, and an error says where it stands, what it holds and what would be valid.
"""

from weft.quantities.yaml_files import read_mapping, read_yaml
from weft.scenario.aggregation import AggregationSection
from weft.scenario.controller import ControllerSection, FlapDampingSection, LinkWatchSection
from weft.scenario.events import EventSection
from weft.scenario.keywords import fabric_options
from weft.scenario.link_retry import LinkRetrySection
from weft.scenario.links import FaultsOfHost, FaultsOfLinks, LinkFaults
from weft.scenario.memory import (
    BufferSection,
    CreditsSection,
    PfcSection,
    PfcWatchdogSection,
    SchedulingSection,
    TrimmingSection,
)
from weft.scenario.model import Scenario
from weft.scenario.nccl import NcclSection
from weft.scenario.nic import NicSection
from weft.scenario.observe import ObserveSection
from weft.scenario.options import MAX_SLOTS, FabricKeywords, FabricOptions
from weft.scenario.parsing import Change, anchor_paths, apply_changes, load_scenario, parse_scenario
from weft.scenario.places import KeyProblem, Places
from weft.scenario.protocols import ProtocolsSection
from weft.scenario.routing import RoutingSection
from weft.scenario.sections import (
    ControlSection,
    EcnSection,
    FaultsSection,
    FidelitySection,
    SwitchingSection,
)
from weft.scenario.traffic import FLOW_DATA, TRAFFIC_KINDS, Traffic, TrafficSection
from weft.scenario.transport import TransportSection
from weft.topologies import LinkChoice

__all__ = [
    "FLOW_DATA",
    "MAX_SLOTS",
    "TRAFFIC_KINDS",
    "AggregationSection",
    "BufferSection",
    "Change",
    "ControlSection",
    "ControllerSection",
    "CreditsSection",
    "EcnSection",
    "EventSection",
    "FabricKeywords",
    "FabricOptions",
    "FaultsOfHost",
    "FaultsOfLinks",
    "FaultsSection",
    "FidelitySection",
    "FlapDampingSection",
    "KeyProblem",
    "LinkChoice",
    "LinkFaults",
    "LinkRetrySection",
    "LinkWatchSection",
    "NcclSection",
    "NicSection",
    "ObserveSection",
    "PfcSection",
    "PfcWatchdogSection",
    "Places",
    "ProtocolsSection",
    "RoutingSection",
    "Scenario",
    "SchedulingSection",
    "SwitchingSection",
    "Traffic",
    "TrafficSection",
    "TransportSection",
    "TrimmingSection",
    "anchor_paths",
    "apply_changes",
    "fabric_options",
    "load_scenario",
    "parse_scenario",
    "read_mapping",
    "read_yaml",
]
