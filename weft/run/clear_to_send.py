"""Whether a collective's receivers can clear its messages, and what that costs on an idle network."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import BadInputError
from weft.scenario import FabricOptions
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.collectives import AUTO, Collective
from weft.traffic.costs import Cost, Links


def objection_to_clear_to_send(collective: Collective, algorithm: str) -> str:
    """Return why receivers cannot clear the messages of a collective by an algorithm, "" if they can."""
    if not collective.has_size:
        return f"a {collective.name} carries no data, so there is nothing to clear"
    if algorithm == AUTO:
        return "auto measures algorithms without it, so name one"
    if collective.algorithm(algorithm).in_network:
        return f"{algorithm} sends aggregation packets, which switches answer, not receivers"
    return ""


def checked_clear_to_send(
    settings: ClearToSend | None, collective: Collective, algorithm: str, options: FabricOptions
) -> ClearToSend | None:
    """Return the settings. Raises BadInputError where the collective, its algorithm or the transport cannot have it."""
    if settings is None:
        return None
    if not isinstance(settings, ClearToSend):
        raise BadInputError(f"clear_to_send is {settings!r}", valid="a weft.ClearToSend, or None")
    if objection := objection_to_clear_to_send(collective, algorithm):
        raise BadInputError(objection, place="clear_to_send", valid="leave it out")
    if not options.transport.kind.orders_messages:
        raise BadInputError(
            f"messages of {options.transport.protocol} arrive out of order, and parts of a transfer must not",
            place="clear_to_send",
            valid="transport.protocol: rc",
        )
    return settings


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
