"""Runs of jobs, from the runner's side: ranks connected, operations handed out, times collected."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TypedDict

import numpy as np

from weft.traffic.commands.jobs import AskOperationTimes, PrepareJob, ProvidedJob
from weft.traffic.connections import Connections
from weft.traffic.endpoint_calls import EndpointCalls
from weft.traffic.jobs.fast_forward import FastForwardGroups, RepeatedParts
from weft.traffic.jobs.native_job import SharedParts, call_channels, channels_of, written_ranks
from weft.traffic.jobs.placing import PlacedRanks
from weft.traffic.jobs.rank_job import RankJob
from weft.traffic.jobs.times import RankTimes
from weft.traffic.mapped_data import RankBuffer
from weft.traffic.messages import AS_BYTES, Payload
from weft.traffic.prepared_runs import PreparedRun, PreparedRuns
from weft.traffic.schedule_nodes import MAX_RUN_TAG, Channel
from weft.traffic.sent_bytes import SentBytes
from weft.traffic.traffic_kinds import TrafficKinds


class JobArguments(TypedDict, total=False):
    """How a job is made ready; `JobRuns.prepare` has the defaults."""

    telemetry: bool
    payload: Payload
    aggregation_jobs: Sequence[int]


class JobRuns:
    """Makes jobs ready on a fabric's endpoints; endpoints in other processes take operations from files."""

    def __init__(
        self,
        calls: EndpointCalls,
        connections: Connections,
        runs: PreparedRuns,
        *,
        shares_memory: bool,
        repeated: FastForwardGroups | None = None,
    ) -> None:
        self._calls, self._connections, self._runs = calls, connections, runs
        self._shares_memory = shares_memory
        self._repeated = repeated
        self.kinds = TrafficKinds()
        # The number of a job among those that are there at the same time, by its run: so that a later one has the same
        # connections.
        self._places: dict[int, int] = {}

    def prepare(
        self,
        number: int,
        placed: PlacedRanks,
        buffers: Sequence[RankBuffer] = (),
        results: Sequence[Path] = (),
        sent: SentBytes | None = None,
        *,
        telemetry: bool = True,
        payload: Payload = AS_BYTES,
        aggregation_jobs: Sequence[int] = (),
    ) -> int:
        """Connect the ranks of a job and have them make ready; returns the run. Raises JobError.

        `aggregation_jobs` belong to `PlacedRanks.reductions`, in order. `buffers` and `results` are the job's ranks',
        as a collective's are; without them collectives have lengths. `sent` counts what the job is going to send.
        """
        shared, with_data = SharedParts(), bool(buffers)
        tag = number % (MAX_RUN_TAG + 1)
        parts = list(placed.parts(self._label(number), tag, with_data=with_data, aggregation_jobs=aggregation_jobs))
        ends = [
            (rank, channel)
            for rank, part in zip(placed.ranks, parts, strict=True)
            for channel in channels_of(part, shared)
        ]
        ends = list(dict.fromkeys(ends))
        self._connections.connect_channels(ends, telemetry)
        repeated: Sequence[RepeatedParts | None] = [None] * len(parts)
        reason = self._reason_against_repeating(parts, ends)
        if self._repeated and reason:
            self._repeated.reasons[reason] = None
        elif self._repeated:
            repeated = self._repeated.of_ranks(placed.ranks, parts, lambda call: call_channels(call, shared))
        with tempfile.TemporaryDirectory() as directory:
            files = {} if self._shares_memory else self._files(placed, Path(directory), with_data)
            commands = {}
            for place, (rank, part) in enumerate(zip(placed.ranks, parts, strict=True)):
                slots = placed.slots(place)
                buffer = buffers[place] if buffers else None
                provided = None
                if self._shares_memory:
                    native = shared.operations(slots, self.kinds.number, calls_apart=with_data)
                    array = None if isinstance(buffer, Path) else buffer
                    provided = ProvidedJob(native, shared, array, repeated[place])
                commands[rank] = PrepareJob(
                    run=number,
                    part=part,
                    operations=files.get(id(slots)),
                    data=str(buffer) if isinstance(buffer, Path) else None,
                    result=str(results[place]) if results else None,
                    payload=payload,
                    provided=provided,
                )
                if sent is not None:
                    sent.add_job(rank, part, slots, shared)
            answers = self._calls.all(commands)
        memory = {rank: answer.memory for rank, answer in answers.items()}
        written = {rank: written_ranks(part, shared) for rank, part in zip(placed.ranks, parts, strict=True)}
        nics = {
            nic
            for part in parts
            for call in part.calls
            if call.aggregation_job is not None
            for nic in shared.schedule(call).planes_aggregated()
        }
        return self._runs.add(number, PreparedRun(list(placed.ranks), memory, written, ends, aggregated=tuple(nics)))

    def _reason_against_repeating(self, parts: Sequence[RankJob], ends: Sequence[tuple[int, Channel]]) -> str:
        """Return why operations take other times than alone, as the end of a sentence; "" if nothing is known."""
        if any(part.communication_share for part in parts):
            return "in which communication takes a share of accelerators"
        if any(self._connections.relay_of(each) is not None for each in ends):
            return "in which ranks send on messages for others of their hosts"
        return ""

    def _files(self, placed: PlacedRanks, directory: Path, calls_apart: bool) -> dict[int, str]:
        """Write each of a job's different operations to a file; returns the names by the identities of their slots."""
        different = {id(slots): slots for slots in map(placed.slots, range(len(placed.ranks)))}
        files = {}
        for number, (identity, slots) in enumerate(different.items()):
            path = directory / f"operations{number}.npz"
            columns = slots.engine_columns(self.kinds.number, calls_apart=calls_apart)
            np.savez(path, **columns)  # type: ignore[arg-type]
            files[identity] = str(path)
        return files

    def _label(self, run: int) -> str:
        self._places = {each: place for each, place in self._places.items() if self._runs.has(each)}
        taken = self._places.values()
        self._places[run] = next(place for place in count() if place not in taken)
        return f"job{self._places[run]}"

    def operation_times(self, run: int) -> list[RankTimes]:
        """Return when each rank's operations started and were done, in order of the job's ranks."""
        ranks = self._runs.ranks(run)
        if self._shares_memory:
            answers = self._calls.all(dict.fromkeys(ranks, AskOperationTimes(run)))
            return [answer.times for answer in answers.values() if answer.times is not None]
        with tempfile.TemporaryDirectory() as directory:
            files = {rank: Path(directory, f"rank{rank}.npz") for rank in ranks}
            self._calls.all({rank: AskOperationTimes(run, str(file)) for rank, file in files.items()})
            return [_read_times(files[rank]) for rank in ranks]


def _read_times(path: Path) -> RankTimes:
    with np.load(path, allow_pickle=False) as columns:
        return RankTimes(**columns)
