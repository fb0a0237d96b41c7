"""Whether a collective's receivers can clear its messages, and what that costs on an idle network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from weft.errors import BadInputError, translated
from weft.scenario.places import KeyProblem
from weft.scenario.traffic import TrafficSection
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.collectives import AUTO, NCCL, Collective, SaysIfScaleUp, collective_named
from weft.traffic.costs import Cost, Links
from weft.traffic.jobs import CollectiveCall, Job, Kind


def objection_to_clear_to_send(collective: Collective, algorithm: str, fabric: SaysIfScaleUp) -> str:
    """Return why receivers cannot clear the messages of a collective by an algorithm, "" if they can."""
    if not collective.has_size:
        return f"a {collective.name} carries no data, so there is nothing to clear"
    if algorithm == AUTO:
        return "auto measures algorithms without it, so name one"
    if algorithm != NCCL and collective.algorithm(algorithm).on(fabric).in_network:
        return f"{algorithm} sends aggregation packets, which switches answer, not receivers"
    return ""


def check_way_of_messages(
    own: str,
    objection_to: Callable[[Collective, str, SaysIfScaleUp], str],
    collective: Collective,
    algorithms: Sequence[str] | None,
    fabric: SaysIfScaleUp,
    key: str,
) -> None:
    """Check that an item can have a key, `own`, on how the messages of its algorithms travel.

    `objection_to` says why an algorithm of the collective cannot. Raises KeyProblem for a key below `key`, the item's.
    """
    if not algorithms:
        raise KeyProblem(f"{key}.algorithms", f"with {own} there must be one or more")
    for name in algorithms:
        with translated(ValueError, KeyProblem, f"{key}.algorithms"):
            objection = objection_to(collective, name, fabric)
        if objection:
            raise KeyProblem(f"{key}.{own}", objection, valid="leave it out")


def checked_clear_to_send(
    settings: ClearToSend | None, collective: Collective, algorithm: str, fabric: SaysIfScaleUp
) -> ClearToSend | None:
    """Return the settings. Raises BadInputError where the collective or its algorithm cannot have it."""
    if settings is None:
        return None
    if not isinstance(settings, ClearToSend):
        raise BadInputError(f"clear_to_send is {settings!r}", valid="a weft.ClearToSend, or None")
    if objection := objection_to_clear_to_send(collective, algorithm, fabric):
        raise BadInputError(objection, place="clear_to_send", valid="leave it out")
    return settings


def require_plain_messages(item: TrafficSection) -> None:
    """Raise BadInputError if an item says how messages travel, for which traces of jobs have no place."""
    for name in ("protocol", "clear_to_send"):
        if getattr(item, name, None) is not None:
            raise BadInputError(f"{name} has no place in a trace", place=item.kind, valid="an item without it")


def cleared_job(job: Job, settings: ClearToSend | None) -> Job:
    """Return a job whose messages receivers clear, in collectives with data and outside of collectives."""
    if settings is None:
        return job

    def cleared(call: CollectiveCall) -> CollectiveCall:
        return replace(call, clear_to_send=settings) if collective_named(call.collective).has_size else call

    return replace(job, calls=tuple(map(cleared, job.calls)), clear_to_send=settings)


def has_messages(job: Job) -> bool:
    """Return whether a job's ranks send each other anything: messages, or data of collectives."""
    return any(collective_named(each.collective).has_size for each in job.calls) or any(
        len(part.operations.of_kind(Kind.SEND)) for part in job.parts
    )


def links_with_clearances(links: Links, settings: ClearToSend | None) -> Links:
    """Return links as cleared messages meet them: a window of messages passes in a round trip, at most."""
    if settings is None:
        return links
    between = links.between
    round_trip_ps = between.message_ps(settings.chunk) + between.message_ps(0)
    ps_per_byte = max(between.ps_per_byte, round_trip_ps / (settings.window * settings.chunk))
    return replace(links, between=replace(between, ps_per_byte=ps_per_byte))


def cost_of_first_clearance(links: Links, settings: ClearToSend | None) -> Cost:
    """Return how long the first message waits: receivers begin as senders do, and their clearances take one way."""
    return Cost(0, 0.0 if settings is None else links.between.message_ps(0), 0.0)
