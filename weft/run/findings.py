"""Collects the results of a fabric's runs and the counters of its switches and hosts for results.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.clocks.lab import Lab
from weft.controller.features.depth_ages import DepthAges
from weft.errors import EnvironmentLacksError
from weft.recording.observations import Observations, Recorded, merged, named_tables, ports_table
from weft.results.arrays import ObservedArrays
from weft.results.circuit_changes import CIRCUIT_CHANGES
from weft.results.counters import HostTotals, absorbed_totals, drop_totals, lateness_of
from weft.results.credits import credit_results
from weft.results.entropy_values import entropy_values_results, path_signals_results
from weft.results.exec import EXEC, exec_warnings
from weft.results.fast_forward import FastForwardResult, fast_forward_results
from weft.results.fidelity import fidelity_results
from weft.results.host_links import host_link_results, host_link_warnings
from weft.results.kinds import R, ResultKind
from weft.results.link_faults import link_fault_results
from weft.results.link_loads import link_loads, loads_table
from weft.results.link_retries import link_retry_results
from weft.results.losses import loss_results
from weft.results.model import time_of
from weft.results.nic_storms import storm_warnings
from weft.results.packet_conservation import PacketConservation, checked_conservation, unsent_by
from weft.results.pfc_watchdog import pfc_storm_results, pfc_watchdog_results, watchdog_warnings
from weft.results.planes import plane_results
from weft.results.queue_depth_ages import queue_depth_ages
from weft.results.rdma import RDMA, datagram_warnings
from weft.results.relays import relay_results
from weft.results.run_result import RunResult
from weft.results.switch_memory import memory_results
from weft.results.trimming import trimming_results
from weft.run.exchanges import Exchanges
from weft.run.made_by import made_by
from weft.run.telemetry import Telemetry
from weft.scenario import FabricOptions
from weft.topologies.round_trips import path_round_trip_ps
from weft.traffic.host_stats import HostStats

if TYPE_CHECKING:
    from weft.engine.records import ConservationCounts
    from weft.run.state_series import StateSeries


class Findings:
    """Collects the results of a lab's runs.

    Args:
        lab: the lab, which may not be up yet.
        exchanges: the lab's runs.
        scenario: name of the scenario, if it has one.
        announced: the sentences said before the run; filled once the lab is up.
    """

    def __init__(self, lab: Lab, exchanges: Exchanges, scenario: str | None, announced: Sequence[str]) -> None:
        self._lab = lab
        self._exchanges = exchanges
        self._scenario = scenario
        self._announced = announced
        self._results: dict[str, list[Any]] = {}
        self._recorded: list[Recorded] = []
        # References of their definitions, in order of the first run.
        self._collectives_run: dict[str, None] = {}
        self._arrays = ObservedArrays()
        self._series: StateSeries | None = None
        self._telemetry = Telemetry(lab)

    @property
    def _options(self) -> FabricOptions:
        return self._lab.options  # changes when the lab is up: to what its switches' programs support

    def find_arrays(self) -> None:
        """Find the counters and registers to be read. Raises KeyProblem if no program has one of them."""
        self._arrays = ObservedArrays.of(self._options.observe, self._lab.programs.pipelines)

    def start_recording(self) -> None:
        """Start the recordings in the options. Raises KeyProblem if no program has an item of a series."""
        observe = self._options.observe
        if observe.any:
            self._lab.start_recording()
        if observe.loads:
            self._lab.count_loads()
        if observe.state_series:
            from weft.run.state_series import StateSeries

            self._series = StateSeries(observe, self._lab)
        self._telemetry.start(self._exchanges.hosts)

    def add(self, kind: ResultKind[R], result: R) -> None:
        """Record a result of a run."""
        self._results.setdefault(kind.key, []).append(result)

    def add_collective(self, reference: str) -> None:
        """Record that a collective has run."""
        self._collectives_run[reference] = None

    def packet_conservation(self) -> ConservationCounts:
        """Return the fate of all packets so far.

        Raises:
            CheckFailedError: the counts do not balance. EnvironmentLacksError: the clock is real.
        """
        counts = self._lab.packet_conservation()
        if counts is None:
            raise EnvironmentLacksError("only the virtual clock counts what becomes of all packets")
        return checked_conservation(counts)

    def observations(self) -> Observations:
        """Return the tables recorded so far."""
        observe = self._options.observe
        observations = Observations(file_format=observe.format)
        if observe.any:
            recorded, observations.rows_lost = self._lab.recorded()
            self._recorded.extend(recorded)
            observations.tables = named_tables(self._lab.fabric, self._options, merged(self._recorded))
        if self._series is not None:
            observations.tables["state_series"] = self._series.table()
            observations.rows_lost += self._series.rows_lost
        return observations

    def all(self, slot_count: int) -> RunResult:
        """Return all results so far; `slot_count` are the slots of an aggregation job."""
        lab, fabric, options = self._lab, self._lab.fabric, self._options
        # First, as it lets the last packets arrive.
        telemetry = self._telemetry.found(self._exchanges.hosts)
        hosts, events = self._exchanges.hosts, self._lab.link_events
        counters = lab.controller.read_counters()
        switches = lab.switch_stats()
        endpoints = hosts.stats()
        totals = HostTotals.of(endpoints)
        path = self._exchanges.int_path
        observations = self.observations()
        stormed = pfc_watchdog_results(fabric, switches)
        losses = loss_results(counters, switches, endpoints)
        observations.tables.update(telemetry.tables)
        observations.rows_lost += telemetry.rows_lost
        observations.tables["ports"] = ports_table(fabric, switches, endpoints)
        loads = self._loads()
        traffic_ps = time_of(self._exchanges.phases)
        inside = host_link_results(endpoints, traffic_ps)
        if options.observe.loads:
            observations.tables["loads"] = loads_table(fabric, loads)
        arrays = self._arrays.read(fabric, lab.controller)
        observations.tables.update(arrays.tables(options.observe))
        lateness = None
        if options.clock == "real":
            rtt_ps = path_round_trip_ps(fabric, lab.frame_bytes, options.switching.latency)
            lateness = lateness_of(switches, endpoints, rtt_ps, options.dilation)
        return RunResult(
            made_by=made_by(lab, hosts, self._scenario, slot_count, self._collectives_run),
            traffic={key: list(results) for key, results in self._results.items()} | self._circuit_changes(),
            fidelity=fidelity_results(options, endpoints),
            fast_forward=self._fast_forward(endpoints),
            planes=plane_results(fabric, counters, switches),
            link_loads=link_loads(fabric, loads, traffic_ps),
            memory=memory_results(fabric, switches, endpoints),
            nic_storms=list(events.storms),
            pfc_watchdog=stormed,
            pfc_storms=pfc_storm_results(fabric, switches),
            int_paths=[path] if path is not None else [],
            telemetry_reports=telemetry.reports,
            telemetry_hops=telemetry.hops,
            trimming=trimming_results(fabric, switches),
            entropy_values=entropy_values_results(endpoints),
            path_signals=path_signals_results(endpoints),
            credits=credit_results(fabric, switches, endpoints),
            queue_depth_ages=queue_depth_ages(fabric, self._queue_depth_ages()),
            link_faults=link_fault_results(fabric, switches),
            demand_routes=list(self._exchanges.demand_routes),
            management_outages=events.management_outages(),
            relays=relay_results(endpoints),
            host_links=inside,
            link_retries=link_retry_results(fabric, switches),
            counters=arrays.counters_in_results,
            registers=arrays.registers_in_results,
            rows_lost=observations.rows_lost,
            warnings=[
                *self._warnings(),
                *host_link_warnings(inside),
                *storm_warnings(events.storms),
                *watchdog_warnings(stormed),
                *datagram_warnings(self._results.get(RDMA.key, [])),
                *exec_warnings(self._results.get(EXEC.key, [])),
                *telemetry.warnings,
            ],
            losses=losses,
            drops=drop_totals(losses, switches, endpoints),
            absorbed=absorbed_totals(counters),
            packet_conservation=None
            if options.clock == "real"
            else PacketConservation.of(self.packet_conservation()).with_unsent(unsent_by(endpoints)),
            link_events=events.results_now(),
            unfinished_events=events.unfinished(),
            controller_events=events.controller_events(),
            noisy_parts=events.noisy_parts(),
            retransmissions=totals.retransmissions,
            cnps=totals.cnps,
            out_of_sequence_packets=totals.out_of_sequence_packets,
            dropped_packet_ins=lab.controller.dropped_packet_ins.total(),
            lateness=lateness,
            phases=list(self._exchanges.phases),
            observations=observations,
        )

    def _fast_forward(self, endpoints: Sequence[HostStats]) -> list[FastForwardResult]:
        repeated = self._exchanges.hosts.repeated
        if repeated is None:
            return []
        between = sum(each["totals"].get("data_bytes_sent", 0) for each in endpoints)
        within = sum(each["scale_up"]["sent_bytes"] for each in endpoints if each["scale_up"] is not None)
        tolerance = self._options.fidelity.fast_forward
        return fast_forward_results(tolerance, repeated.counts, (between, within), list(repeated.reasons))

    def _warnings(self) -> list[str]:
        warnings = list(self._announced)
        if off := self._lab.left_out():
            warnings.append(" ".join(f"{line}." for line in off))
        return warnings + (self._series.warnings() if self._series is not None else [])

    def _loads(self) -> dict[str, dict[str, int]]:
        """Return the bytes that each port has sent by kind of traffic; {} unless counted."""
        name = self._exchanges.hosts.traffic_kinds.name
        return {port: {name(number): size for number, size in sent.items()} for port, sent in self._lab.loads().items()}

    def _circuit_changes(self) -> dict[str, list[Any]]:
        """Return all circuit changes, including scheduled ones that no traffic item has recorded; {} without any."""
        circuits = self._lab.circuits
        return {CIRCUIT_CHANGES.key: list(circuits.changes)} if circuits and circuits.changes else {}

    def _queue_depth_ages(self) -> dict[str, DepthAges]:
        """Return the ages of queue depths by switch; {} unless load balancing uses depths."""
        is_adaptive = self._options.load_balancing.is_adaptive
        return self._lab.controller.read_depth_ages() if is_adaptive else {}
