"""Checks what a scenario observes against its fabric before anything is built."""

from __future__ import annotations

import importlib.util

from weft.errors import EnvironmentLacksError
from weft.hints import did_you_mean, install_extra
from weft.recording.places import Places
from weft.scenario import KeyProblem
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec


def check_observed(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check ports, hosts and file format that `options.observe` names.

    Raises:
        BadInputError: no such port or host, or INT is off. EnvironmentLacksError: a library is missing.
    """
    observe = options.observe
    if observe.queues and observe.queues != "all":
        Places(fabric).checked_ports("queues", observe.queues)
    if observe.captures:
        Places(fabric).checked_ports("captures", observe.captures)
    if observe.state_at and options.clock != "virtual":
        raise KeyProblem("observe.state_at", "a run of the real clock keeps no states", valid="with clock: virtual")
    if fabric.spares and (observe.flows or observe.int_flows or observe.timelines):
        raise KeyProblem(
            "observe",
            "flows, int and timelines name hosts by their ranks, which spares may take",
            valid="without fabric.spares",
        )
    if observe.int_flows and not options.int_telemetry:
        raise KeyProblem("observe.int", "there is no INT to record with int: false")
    if observe.int_flows != "all":
        hosts = [host.name for host in fabric.hosts]
        for pair in observe.int_flows:
            source, destination = pair.split("->")
            for name in (source, destination):
                if name not in hosts:
                    raise KeyProblem("observe.int", f"'{pair}': no host '{name}'; {did_you_mean(name, hosts)}")
            if source == destination:
                raise KeyProblem("observe.int", f"'{pair}': a flow goes from one host to another")
    if observe.format == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise EnvironmentLacksError(
            f"parquet needs pyarrow: {install_extra('parquet')}, or take csv, which needs nothing",
            place="observe.format",
        )
