"""The work that Weft and a peer both do: a scenario's fabric and parameters, and a list of flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from weft.clocks.frame_sizes import int_md_bytes, write_frame_bytes
from weft.engine import congestion_parameters_in_force
from weft.quantities.arrays import Integers
from weft.recording.ideal_times import IdealTimes
from weft.run.spec import RunSpec, run_spec
from weft.scenario import parse_scenario
from weft.topologies import FabricSpec
from weft.topologies.round_trips import loaded_round_trip_ps
from weft.traffic.patterns import Flow
from weft.traffic.transports.kind import FrameShape

_COLUMNS = ("source", "destination", "plane", "size_bytes", "start_ps")


@dataclass(frozen=True)
class Work:
    """Flows over a fabric. Hosts are counted from 0, and starts from the beginning of the run.

    Attributes:
        title: for tables and errors.
        scenario: keys of a Weft scenario without `traffic`; its clock is virtual. Adapters read fabric, MTU, marks,
            transport and congestion control from it, with Weft's defaults in force.
        flows: in order of their starts.
        traffic: how Weft runs the flows, if not as a list of flows.
        stop_ps: emulated time at which a peer stops at the latest.
    """

    title: str
    scenario: Mapping[str, object]
    flows: tuple[Flow, ...]
    traffic: Mapping[str, object] | None = None
    stop_ps: int = field(default=2 * 10**12, kw_only=True)

    def __post_init__(self) -> None:
        starts = [flow.start_ps for flow in self.flows]
        if not starts or starts != sorted(starts):
            raise ValueError(f"{self.title}: {len(starts)} flows (valid: 1 or more, in order of their starts)")

    @cached_property
    def spec(self) -> RunSpec:
        """The checked description of the run, without traffic. Raises BadInputError for keys that are not valid."""
        tree = {"name": "peers", **self.scenario, "clock": "virtual"}
        return run_spec(parse_scenario(tree, self.title, units_required=True))

    @property
    def fabric(self) -> FabricSpec:
        """Hosts, switches and links."""
        return self.spec.fabric

    @cached_property
    def columns(self) -> dict[str, Integers]:
        """The flows as columns, named like the fields of Flow."""
        return {name: np.array([getattr(flow, name) for flow in self.flows], np.int64) for name in _COLUMNS}

    @cached_property
    def ideal_ps(self) -> Integers:
        """Completion time of each flow alone on the fabric, with Weft's frames: what all slowdowns divide by."""
        times = IdealTimes.of_fabric(self.fabric, self.spec.options)
        return times.of(*(self.columns[name] for name in ("source", "destination", "plane", "size_bytes")))

    @property
    def control_parameters(self) -> Mapping[str, float]:
        """All parameters of the hosts' congestion control, by their names in the engine, as the hosts use them."""
        options = self.spec.options
        transport = options.transport.settings()
        largest_bytes = write_frame_bytes(options, int_md_bytes(self.fabric, options))
        shape = FrameShape(options.ip_version == 6, options.int_telemetry, transport.retransmission)
        return congestion_parameters_in_force(
            transport.congestion_control,
            preset=transport.preset or "",
            parameters=dict(transport.parameters),
            ack_interval_packets=transport.ack_interval_in_force,
            line_rate_bps=self.fabric.hosts[0].nics[0].link.rate_bps,
            base_round_trip_ps=loaded_round_trip_ps(self.fabric, largest_bytes, options.switching.latency),
            frame_bytes=options.transport.kind.full_frame_bytes(options.mtu_bytes, shape),
        )

    def flow_csv(self) -> str:
        """Return the flows as a file of Weft's format `flow_csv`."""
        rows = (f"{each.source},{each.destination},{each.size_bytes},{each.start_ps}ps" for each in self.flows)
        return "\n".join(["source,destination,size,start", *rows, ""])

    def tree(self, flow_file: Path) -> dict[str, object]:
        """Return Weft's scenario as plain data; `flow_file` holds `flow_csv`."""
        traffic = self.traffic or {"flow_list": str(flow_file), "format": "flow_csv", "data": "lengths"}
        return {"name": "peers", **self.scenario, "clock": "virtual", "traffic": [dict(traffic)]}
