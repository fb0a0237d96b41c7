"""Which ranks the tokens of a micro-batch go to for their experts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from weft.errors import InvalidValueError
from weft.jobs.routing_matrix import given_matrix
from weft.quantities.arrays import Integers
from weft.quantities.definitions import number, whole
from weft.quantities.example import Example
from weft.quantities.section import Section
from weft.traffic.expert_choice import chosen_experts, skewed_popularity


class Routing(Section):
    """How tokens choose experts. Without skew, popularity or matrix all experts have the same number of tokens.

    The choice is given, or drawn once from the seed; it holds for all layers and micro-batches.
    """

    hosts_per_token: Annotated[int, whole(1, 1 << 16, example="4")] | None = None
    """Most hosts that a token's experts are on. The sender sends the token once to each of them, to the rank with its
    own position in the host, which forwards it over scale-up links (DeepSeek-V3, section 3.2.2). Without a limit each
    copy goes directly to its expert's rank."""
    skew: Annotated[float, number(0, 10, example="0.2")] = 0.0
    """The i-th most popular expert is chosen in proportion to i^-skew (Zipf); the seed draws their order."""
    popularity: Annotated[list[Annotated[float, number(0, 1e6, above=True)]] | None, Example("[4, 2, 1, 1]")] = Field(
        None, min_length=1
    )
    """Relative popularity of each expert, in order of the ranks. In place of `skew`."""

    matrix: Annotated[
        Path | list[list[Annotated[int, whole(0, 1 << 40)]]] | None, Example("[[96, 32, 64, 64], [64, 64, 96, 32]]")
    ] = None
    """Tokens of a micro-batch from each rank that shares experts (rows) to each expert (columns, in order of the
    ranks): inline, or a CSV or JSON file, relative to the scenario. In place of `skew` and `popularity`."""

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        given = [
            name
            for name, value in (("skew", self.skew), ("popularity", self.popularity), ("matrix", self.matrix))
            if value
        ]
        if len(given) > 1:
            raise InvalidValueError(f"{' and '.join(given)} exclude each other", valid="one of them")
        if self.matrix is not None and self.hosts_per_token is not None:
            raise InvalidValueError(
                "hosts_per_token does not go with matrix, which does not say which experts a token chose together",
                valid="one of them",
            )
        return self

    @property
    def is_balanced(self) -> bool:
        """Whether all experts have the same number of tokens."""
        return self.skew == 0 and self.popularity is None and self.matrix is None

    @cached_property
    def given(self) -> Integers | None:
        """Tokens from each rank to each expert; None if they are drawn. Raises BadInputError for an invalid matrix."""
        return None if self.matrix is None else given_matrix(self.matrix)


@dataclass(frozen=True, eq=False)
class RoutedTokens:
    """Tokens that ranks that share experts send each other for a micro-batch.

    Attributes:
        copies: token copies from each rank to each rank: one for each expert that a token chose there.
        to_hosts: tokens from each rank to each host: one if a token chose any expert there; None if a given matrix
            does not say which experts a token chose together.
        ranks_per_host: ranks on each host that share the experts.

    """

    copies: Integers
    to_hosts: Integers | None
    ranks_per_host: int

    def load(self, member: int) -> float:
        """Return the tokens of a rank's experts over the mean of all ranks."""
        return float(self.copies[:, member].sum() / self.copies.sum() * len(self.copies))

    def to_relays(self) -> Integers:
        """Return the tokens from each rank to the relay in each host: the rank with the sender's position there."""
        assert self.to_hosts is not None, "a limit of hosts goes with drawn choices"
        found = np.zeros_like(self.copies)
        members = np.arange(len(found))
        for host in range(self.to_hosts.shape[1]):
            found[members, host * self.ranks_per_host + members % self.ranks_per_host] = self.to_hosts[:, host]
        return found

    def within_hosts(self) -> Integers:
        """Return the copies that each rank forwards to each rank of its host, including copies of its own tokens."""
        count, local = len(self.copies), self.ranks_per_host
        # copies[sender's host, its position, receiver's host, its position], summed over the senders' hosts.
        by_place = self.copies.reshape(count // local, local, count // local, local).sum(axis=0)
        found = np.zeros_like(self.copies)
        for host in range(count // local):
            block = slice(host * local, (host + 1) * local)
            found[block, block] = by_place[:, host, :]
        return found


def routed_tokens(
    routing: Routing, experts: int, top_k: int, members: int, ranks_per_host: int, tokens: int, seed: int
) -> RoutedTokens:
    """Return the tokens that ranks send each other under a routing.

    Args:
        routing: how tokens choose experts.
        experts: experts of a layer, the same number on each rank.
        top_k: experts that a token chooses.
        members: ranks that share the experts, host by host.
        ranks_per_host: how many of these ranks are on each host.
        tokens: tokens of each rank.
        seed: random seed of the choices.
    """
    if routing.given is not None:
        copies = routing.given.reshape(members, members, experts // members).sum(axis=2)
        return RoutedTokens(copies, None, ranks_per_host)
    generator = np.random.default_rng([seed, experts, members])
    if routing.popularity is not None:
        popularity = np.array(routing.popularity)
    else:
        popularity = generator.permutation(skewed_popularity(experts, routing.skew))
    hosts, each = members // ranks_per_host, experts // members
    by_host = popularity.reshape(hosts, -1)
    limit = hosts if routing.hosts_per_token is None else routing.hosts_per_token
    copies = np.zeros((members, members), np.int64)
    to_hosts = np.zeros((members, hosts), np.int64)
    for member in range(members):
        chosen = chosen_experts(by_host, tokens, top_k, limit, generator)
        copies[member] = np.bincount(chosen.ravel() // each, minlength=members)
        met = np.zeros((tokens, hosts), np.bool_)
        np.put_along_axis(met, chosen // by_host.shape[1], True, axis=1)
        to_hosts[member] = met.sum(axis=0)
    return RoutedTokens(copies, to_hosts, ranks_per_host)
