"""The commands that a host carries out, whether they come from stdin or from a caller in the same process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from weft.traffic.answers import Done, EntropyValues, EvEvents, EvProfilesOfHost, RunState, Saved, Suspended
from weft.traffic.commands import (
    aggregation,
    applications,
    collectives,
    collector,
    connections,
    counters,
    evs,
    flows,
    jobs,
    parameters,
    programs,
    runs,
    services,
    tcp,
)
from weft.traffic.commands.base import Command
from weft.traffic.host import Host
from weft.traffic.host_runs import HostRuns

if TYPE_CHECKING:
    from weft.traffic.host_programs import HostPrograms

A = TypeVar("A")


class HostCommands:
    """Carries out commands on a host; their errors pass through."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs = HostRuns(host)
        self._carriers: dict[type[Command[Any]], Callable[[Any], object]] = {
            connections.Connect: self._connect,
            connections.Disconnect: self._disconnect,
            connections.Suspend: lambda command: Suspended(tuple(map(host.suspend, command.channels))),
            connections.Detour: self._detour,
            aggregation.Join: self._join,
            aggregation.StopStreams: lambda command: host.reductions.stop(command.job_id),
            aggregation.MoveStreams: self._move_streams,
            aggregation.WriteContributions: lambda command: host.reductions.write_contributions(
                command.part, command.path
            ),
            aggregation.ReadResults: self._read_results,
            aggregation.EndMessages: self._end_messages,
            aggregation.Leave: self._leave,
            collectives.PrepareCollective: self._runs.prepare_collective,
            collectives.PrepareTrainingStep: self._runs.prepare_training_step,
            flows.PrepareTraffic: self._runs.prepare_traffic,
            flows.PrepareFlows: self._runs.prepare_flows,
            jobs.PrepareJob: self._runs.prepare_job,
            parameters.PrepareParameters: self._runs.prepare_parameters,
            parameters.AskParameterRecords: self._runs.parameter_records,
            tcp.PrepareTcpFlows: self._runs.prepare_tcp_flows,
            tcp.AskTcpRecords: self._runs.tcp_records,
            services.PrepareService: self._runs.prepare_service,
            services.AskServiceRecords: self._runs.service_records,
            applications.PrepareApplications: self._runs.prepare_applications,
            applications.AskApplicationRecords: self._runs.application_records,
            jobs.AskOperationTimes: self._runs.operation_times,
            flows.AskFlowRecords: lambda command: self._runs.flow_records(command.run),
            runs.Start: self._runs.start,
            runs.Status: lambda command: self._runs.state(command.run),
            runs.Release: lambda command: self._runs.release(command.run),
            counters.AskStats: lambda _: host.stats(),
            counters.ResetStats: self._reset_stats,
            evs.AskEvs: lambda _: EntropyValues(tuple(host.operated_evs().evs())),
            evs.SetEvs: self._set_evs,
            evs.ProbeEvs: self._probe_evs,
            evs.AskEvProfiles: lambda _: EvProfilesOfHost(tuple(host.operated_evs().all_profiles())),
            evs.ModifyEvProfile: self._modify_ev_profile,
            evs.AssignEvProfile: self._assign_ev_profile,
            evs.TakeEvEvents: lambda command: EvEvents(tuple(host.operated_evs().take_events(command.most))),
            counters.AskTransport: lambda command: host.transport.in_force(host.config.nics, command),
            programs.StartProgram: lambda command: self._programs.start(command),
            programs.FollowProgram: lambda command: self._programs.follow(command),
            programs.EndProgram: lambda command: self._programs.end(command),
            counters.Capture: self._capture,
            counters.SaveRecorded: self._save_recorded,
            collector.Collect: self._collect,
            collector.SaveCollected: lambda command: Saved(host.save_collected(command.path)),
        }

    def carry_out(self, command: Command[A]) -> A:
        """Carry out any command but a `Wait`, which depends on the clock, and return its answer."""
        return cast(A, self._carriers[type(command)](command))

    def close(self) -> None:
        """Stop carrying out commands, and release the host."""
        self._carriers.clear()

    @cached_property
    def _programs(self) -> HostPrograms:
        # Imported here, because hosts without programs need no asyncio.
        from weft.traffic.host_programs import HostPrograms

        return HostPrograms(self._host)

    def state(self, run: int) -> RunState:
        """Return how far a run is. Raises ValueError for an unknown one."""
        return self._runs.state(run)

    def _connect(self, command: connections.Connect) -> Done:
        for connection in command.connections:
            self._host.connect(connection)
        for relayed in command.relayed:
            self._host.relays.connect(relayed)
        return Done()

    def _disconnect(self, command: connections.Disconnect) -> Done:
        gone = [channel for channel in self._host.channels() if command.label in (None, channel.label)]
        for channel in gone:
            self._host.disconnect(channel)
        self._host.end_relays(command.label)
        if command.label is None:
            self._host.forget_neighbours()
        return Done()

    def _detour(self, command: connections.Detour) -> Done:
        for each in command.channels:
            self._host.detour(each.channel, each.over, each.peer_received)
        return Done()

    def _join(self, command: aggregation.Join) -> Done:
        for membership in command.jobs:
            self._host.join(membership)
        return Done()

    def _move_streams(self, command: aggregation.MoveStreams) -> Done:
        for stream in command.streams:
            self._host.move_stream(command.job_id, stream)
        return Done()

    def _read_results(self, command: aggregation.ReadResults) -> Done:
        self._host.reductions.read_results(command.part, command.path)
        return Done()

    def _end_messages(self, command: aggregation.EndMessages) -> Done:
        self._host.reductions.end_messages(command.plane, command.job_id, command.end)
        return Done()

    def _leave(self, command: aggregation.Leave) -> Done:
        for plane in command.planes:
            self._host.leave(plane, command.keep)
        return Done()

    def _set_evs(self, command: evs.SetEvs) -> Done:
        self._host.operated_evs().set_denied(command.evs, denied=command.denied)
        return Done()

    def _probe_evs(self, command: evs.ProbeEvs) -> Done:
        self._host.operated_evs().probe(command.evs)
        return Done()

    def _modify_ev_profile(self, command: evs.ModifyEvProfile) -> Done:
        self._host.operated_evs().modify_profile(command.profile_id, command.attributes)
        return Done()

    def _assign_ev_profile(self, command: evs.AssignEvProfile) -> Done:
        self._host.operated_evs().profiles.assign(command.profile_id)
        return Done()

    def _reset_stats(self, _: counters.ResetStats) -> Done:
        self._host.reset_stats()
        return Done()

    def _capture(self, command: counters.Capture) -> Done:
        self._host.capture(command.plane, command.path, command.without_shims)
        return Done()

    def _collect(self, command: collector.Collect) -> Done:
        self._host.collect(command.port)
        return Done()

    def _save_recorded(self, command: counters.SaveRecorded) -> Saved:
        return Saved(self._host.save_recorded(command.path))
