"""The job of an inference plan: it computes prompts and sends their KV caches, but generates no outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.prefill import PrefillSchedule, prefill_times
from weft.jobs.training_plan import PlanError
from weft.quantities.arrays import Integers
from weft.traffic.jobs import Job, Kind, OperationsBuilder, RankPart
from weft.traffic.jobs.operations import Operations
from weft.traffic.jobs.times import RankTimes

PREFILL, KV_CACHE = "prefill", "KV cache"
MAX_MESSAGES = 1 << 20
"""Most messages from one rank to another: the engine numbers them in 20 bits."""


@dataclass(frozen=True, eq=False)
class RequestTimes:
    """Times of each request, in order: start and end of its prefill, and when all that was sent for it had arrived.

    `provider` is the request with which the prefix that was not sent for it came, or its own number.
    """

    prefill_start_ps: Integers
    prefill_end_ps: Integers
    delivered_ps: Integers
    provider: Integers

    @property
    def handed_over_ps(self) -> Integers:
        """When decoding may begin: the prompt has been computed, and all of its cache has arrived."""
        arrived_ps = np.maximum(self.delivered_ps, self.delivered_ps[self.provider])
        return np.maximum(self.prefill_end_ps, arrived_ps)


def transfer_job(plan: InferencePlan, schedule: PrefillSchedule, name: str = "inference") -> Job:
    """Return the job. Its ranks are the prefill instances' ranks, then the decode instances', in order.

    Raises PlanError for too many messages between two ranks, OperationsError for times and sizes out of range.
    """
    _check_messages(plan, schedule)
    parts: list[RankPart] = []
    for instance in range(plan.prefill.instances):
        requests = np.flatnonzero(schedule.prefill == instance).tolist()
        programs: dict[tuple[tuple[int, int], ...], tuple[Operations, tuple[int, ...]]] = {}
        for source in range(plan.prefill.tensor):
            shares = [share for share in plan.shares if share.source == source]
            # Ranks that send the same numbers of heads to as many peers have the same operations.
            targets = tuple((number, share.heads) for number, share in enumerate(shares))
            if targets not in programs:
                programs[targets] = _prefill_operations(plan, schedule, requests, targets)
            operations, slots = programs[targets]
            peers = (divmod(slot, max(1, len(shares))) for slot in slots)
            parts.append(
                RankPart(
                    operations,
                    tuple(_decode_rank(plan, decode, shares[each].destination) for decode, each in peers),
                )
            )
    for instance in range(plan.decode.instances):
        requests = np.flatnonzero(schedule.decode == instance).tolist()
        for destination in range(plan.decode.tensor):
            parts.append(_decode_part(plan, schedule, requests, destination))
    return Job(name, tuple(parts))


def _check_messages(plan: InferencePlan, schedule: PrefillSchedule) -> None:
    pairs = schedule.prefill * plan.decode.instances + schedule.decode
    most = int(np.bincount(pairs).max())
    if most * plan.messages_per_share > MAX_MESSAGES:
        raise PlanError(
            "requests",
            f"{most} between two instances, of {plan.messages_per_share} messages from rank to rank each",
            valid=f"up to {MAX_MESSAGES // plan.messages_per_share}",
        )


def request_times(plan: InferencePlan, schedule: PrefillSchedule, job: Job, times: Sequence[RankTimes]) -> RequestTimes:
    """Return each request's times in a run of the job; a cache has arrived when all its parts have."""
    count = len(plan.requests)
    starts = np.full(count, np.iinfo(np.int64).max)
    ends, delivered = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for instance in range(plan.prefill.instances):
        requests = np.flatnonzero(schedule.prefill == instance)
        for rank in plan.prefill.ranks_of(instance):
            of_rank = _requests_of(job.parts[rank].operations, Kind.COMPUTE, requests)
            rows = job.parts[rank].operations.of_kind(Kind.COMPUTE)
            np.minimum.at(starts, of_rank, times[rank].started_ps[rows])
            np.maximum.at(ends, of_rank, times[rank].finished_ps[rows])
    for instance in range(plan.decode.instances):
        requests = np.flatnonzero(schedule.decode == instance)
        for rank in plan.decode.ranks_of(instance, plan.prefill.rank_count):
            of_rank = _requests_of(job.parts[rank].operations, Kind.RECEIVE, requests)
            rows = job.parts[rank].operations.of_kind(Kind.RECEIVE)
            np.maximum.at(delivered, of_rank, times[rank].finished_ps[rows])
    return RequestTimes(starts, ends, delivered, schedule.provider)


def _prefill_operations(
    plan: InferencePlan,
    schedule: PrefillSchedule,
    requests: Sequence[int],
    targets: Sequence[tuple[int, int]],
) -> tuple[Operations, tuple[int, ...]]:
    """Return a prefill rank's operations, and for each peer slot which decode instance and target it is.

    `targets` are the peers in each decode instance: number and heads. A slot's value is the decode instance times
    the number of targets, plus the target's number.
    """
    builder, slots, done = OperationsBuilder(), dict[int, int](), list[int]()
    times, tokens = prefill_times(plan), plan.requests.prompt_tokens
    sent_tokens = tokens - schedule.held_tokens
    for request in requests:
        arrived = builder.timer(int(plan.requests.arrival_ps[request]), category=PREFILL)
        cached, name = int(schedule.cached_tokens[request]), f"request {request}"
        steps = [*times.layers_ps(int(tokens[request]) - cached, cached), times.output_ps]
        steps = steps if plan.is_by_layer else [sum(steps)]
        for number, duration_ps in enumerate(steps):
            after = [arrived, *done] if number == 0 else done
            done = [builder.compute(duration_ps, after=after, category=PREFILL, name=name)]
            # Behind the last layer is the output matrix, which has no cache.
            for target, heads in targets if number < plan.messages_per_share else ():
                key = int(schedule.decode[request]) * len(targets) + target
                slot = slots.setdefault(key, len(slots))
                size_bytes = plan.message_bytes(heads, int(sent_tokens[request]))
                builder.send(slot, size_bytes, after=done, category=KV_CACHE, name=name)
    return builder.build(), tuple(slots)


def _decode_part(plan: InferencePlan, schedule: PrefillSchedule, requests: Sequence[int], destination: int) -> RankPart:
    builder, slots = OperationsBuilder(), dict[int, int]()
    shares = [share for share in plan.shares if share.destination == destination]
    sent_tokens = plan.requests.prompt_tokens - schedule.held_tokens
    for request in requests:
        sent, name = int(sent_tokens[request]), f"request {request}"
        for share in shares:
            peer = int(schedule.prefill[request]) * plan.prefill.tensor + share.source
            slot = slots.setdefault(peer, len(slots))
            for _ in range(plan.messages_per_share):
                size_bytes = plan.message_bytes(share.heads, sent)
                builder.receive(slot, size_bytes, category=KV_CACHE, name=name)
    return RankPart(builder.build(), tuple(slots))


def _decode_rank(plan: InferencePlan, instance: int, place: int) -> int:
    return plan.decode.ranks_of(instance, plan.prefill.rank_count)[place]


def _requests_of(operations: Operations, kind: Kind, requests: Integers) -> Integers:
    """Return the request of each operation of a kind; each request of a rank has the same number of them."""
    count = len(operations.of_kind(kind))
    return np.repeat(requests, count // len(requests)) if len(requests) else requests
