"""Moves tokens to experts and back: by collectives under balanced routing, by single messages otherwise."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from weft.jobs.expert_routing import RoutedTokens
from weft.jobs.models import Experts
from weft.jobs.program_writer import ExpertPeer, GroupKind, Peer, ProgramWriter, Stream
from weft.jobs.training_plan import TrainingPlan


class ExpertExchange(ABC):
    """Writes the operations by which a rank exchanges tokens with the routed experts of a layer."""

    load: float = 1.0
    """Tokens of the rank's experts over the mean of all ranks."""

    @abstractmethod
    def dispatch(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send tokens to experts."""

    @abstractmethod
    def combine(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send results back."""


def expert_exchange(plan: TrainingPlan, experts: Experts, member: int) -> ExpertExchange:
    """Return the exchange of a rank, given its number among the ranks that share its experts."""
    routing = plan.routing
    if routing.is_balanced:
        return _Direct(plan, experts) if routing.hosts_per_token is None else _OncePerHost(plan, experts)
    return _Drawn(plan.drawn_tokens, member, is_direct=routing.hosts_per_token is None)


class _Direct(ExpertExchange):
    """An all-to-all: tokens × top-k copies."""

    def __init__(self, plan: TrainingPlan, experts: Experts) -> None:
        self._copies = plan.routed_tokens * experts.top_k

    def dispatch(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send tokens to experts."""
        writer.collective(GroupKind.EXPERT, "alltoall", self._copies * token_bytes, Stream.EXPERT)

    def combine(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send results back."""
        self.dispatch(writer, token_bytes)


class _OncePerHost(ExpertExchange):
    """An all-to-all among ranks with the same position in their hosts, and one within each host.

    A token goes to as many hosts as it may, at most `top_k`. Results are summed in the host before they go back
    (DeepSeek-V3, section 3.2.2).
    """

    def __init__(self, plan: TrainingPlan, experts: Experts) -> None:
        assert plan.routing.hosts_per_token is not None
        hosts = min(plan.routing.hosts_per_token, experts.top_k, plan.expert_hosts)
        self._tokens = plan.routed_tokens * hosts
        self._copies = plan.routed_tokens * experts.top_k

    def dispatch(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send tokens to experts."""
        self._across(writer, token_bytes)
        self._within(writer, token_bytes)

    def combine(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send results back."""
        self._within(writer, token_bytes)
        self._across(writer, token_bytes)

    def _across(self, writer: ProgramWriter, token_bytes: int) -> None:
        size_bytes = self._tokens * token_bytes
        writer.collective(GroupKind.EXPERT_ACROSS_HOSTS, "alltoall", size_bytes, Stream.EXPERT)

    def _within(self, writer: ProgramWriter, token_bytes: int) -> None:
        size_bytes = self._copies * token_bytes
        writer.collective(GroupKind.EXPERT_WITHIN_HOST, "alltoall", size_bytes, Stream.EXPERT)


class _Drawn(ExpertExchange):
    """A message for each pair of ranks that exchange tokens; results take the same path back."""

    def __init__(self, tokens: RoutedTokens, member: int, *, is_direct: bool) -> None:
        self.load = tokens.load(member)
        self._member = member
        self._hops = [tokens.copies] if is_direct else [tokens.to_relays(), tokens.within_hosts()]

    def dispatch(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send tokens to experts."""
        for hop in self._hops:
            self._exchange(writer, hop * token_bytes)

    def combine(self, writer: ProgramWriter, token_bytes: int) -> None:
        """Send results back."""
        for hop in reversed(self._hops):
            self._exchange(writer, hop.T * token_bytes)

    def _exchange(self, writer: ProgramWriter, size_bytes: NDArray[np.int64]) -> None:
        """Send a row of sizes and receive a column; later operations wait for both."""
        others = [each for each in range(len(size_bytes)) if each != self._member]
        sent: dict[Peer, int] = {ExpertPeer(each): int(size_bytes[self._member, each]) for each in others}
        received: dict[Peer, int] = {ExpertPeer(each): int(size_bytes[each, self._member]) for each in others}
        writer.exchange(sent, received, GroupKind.EXPERT.category)
