"""The commands that a host carries out, whether they come from stdin or from a caller in the same process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from weft.traffic import commands
from weft.traffic.answers import Done, RunState, Saved, Suspended
from weft.traffic.commands import Command
from weft.traffic.host import Host
from weft.traffic.host_runs import HostRuns

if TYPE_CHECKING:
    from weft.traffic.host_programs import HostPrograms

A = TypeVar("A")


class HostCommands:
    """Carries out commands on a host; errors are those of what they do."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs = HostRuns(host)
        self._carriers: dict[type[Command[Any]], Callable[[Any], object]] = {
            commands.Connect: self._connect,
            commands.Disconnect: self._disconnect,
            commands.Suspend: lambda command: Suspended(tuple(map(host.suspend, command.channels))),
            commands.Detour: self._detour,
            commands.Join: self._join,
            commands.StopStreams: lambda command: host.reductions.stop(command.job_id),
            commands.MoveStreams: self._move_streams,
            commands.WriteContributions: lambda command: host.reductions.write_contributions(
                command.part, command.path
            ),
            commands.ReadResults: self._read_results,
            commands.EndMessages: self._end_messages,
            commands.Leave: self._leave,
            commands.PrepareCollective: self._runs.prepare_collective,
            commands.PrepareTrainingStep: self._runs.prepare_training_step,
            commands.PrepareTraffic: self._runs.prepare_traffic,
            commands.PrepareFlows: self._runs.prepare_flows,
            commands.PrepareJob: self._runs.prepare_job,
            commands.PrepareParameters: self._runs.prepare_parameters,
            commands.AskParameterRecords: self._runs.parameter_records,
            commands.PrepareTcpFlows: self._runs.prepare_tcp_flows,
            commands.AskTcpRecords: self._runs.tcp_records,
            commands.PrepareService: self._runs.prepare_service,
            commands.AskServiceRecords: self._runs.service_records,
            commands.PrepareApplications: self._runs.prepare_applications,
            commands.AskApplicationRecords: self._runs.application_records,
            commands.AskOperationTimes: self._runs.operation_times,
            commands.AskFlowRecords: lambda command: self._runs.flow_records(command.run),
            commands.Start: self._runs.start,
            commands.Status: lambda command: self._runs.state(command.run),
            commands.Release: lambda command: self._runs.release(command.run),
            commands.AskStats: lambda _: host.stats(),
            commands.ResetStats: self._reset_stats,
            commands.AskTransport: host.transport_in_force,
            commands.StartProgram: lambda command: self._programs.start(command),
            commands.FollowProgram: lambda command: self._programs.follow(command),
            commands.EndProgram: lambda command: self._programs.end(command),
            commands.Capture: self._capture,
            commands.SaveRecorded: self._save_recorded,
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

    def _connect(self, command: commands.Connect) -> Done:
        for connection in command.connections:
            self._host.connect(connection)
        return Done()

    def _disconnect(self, command: commands.Disconnect) -> Done:
        gone = [channel for channel in self._host.channels() if command.label in (None, channel.label)]
        for channel in gone:
            self._host.disconnect(channel)
        if command.label is None:
            self._host.forget_neighbours()
        return Done()

    def _detour(self, command: commands.Detour) -> Done:
        for each in command.channels:
            self._host.detour(each.channel, each.over, each.peer_received)
        return Done()

    def _join(self, command: commands.Join) -> Done:
        for membership in command.jobs:
            self._host.join(membership)
        return Done()

    def _move_streams(self, command: commands.MoveStreams) -> Done:
        for stream in command.streams:
            self._host.move_stream(command.job_id, stream)
        return Done()

    def _read_results(self, command: commands.ReadResults) -> Done:
        self._host.reductions.read_results(command.part, command.path)
        return Done()

    def _end_messages(self, command: commands.EndMessages) -> Done:
        self._host.reductions.end_messages(command.plane, command.job_id, command.end)
        return Done()

    def _leave(self, command: commands.Leave) -> Done:
        for plane in command.planes:
            self._host.leave(plane, command.keep)
        return Done()

    def _reset_stats(self, _: commands.ResetStats) -> Done:
        self._host.reset_stats()
        return Done()

    def _capture(self, command: commands.Capture) -> Done:
        self._host.capture(command.plane, command.path)
        return Done()

    def _save_recorded(self, command: commands.SaveRecorded) -> Saved:
        return Saved(self._host.save_recorded(command.path))
