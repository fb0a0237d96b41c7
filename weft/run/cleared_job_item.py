"""Base class of items that are jobs with messages that receivers may clear."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from weft.quantities.example import Example
from weft.run.algorithms import is_in_network
from weft.run.clear_to_send import cleared_job
from weft.run.traffic_kinds.base import JobItem
from weft.scenario.clear_to_send import ClearToSendSection
from weft.scenario.places import KeyProblem
from weft.traffic.jobs import Job


class ClearedJobItem(JobItem):
    """An item that is a job with messages that receivers may clear."""

    clear_to_send: Annotated[ClearToSendSection | None, Example("{window: 4}")] = None
    """Receiver-driven admission of messages between hosts, in collectives and outside: ranks send only what the
    receiver has cleared. By default they do not wait."""

    def check_clearances(self, algorithms: Iterable[str], key: str) -> None:
        """Check that receivers can clear the messages of these algorithms. Raises KeyProblem."""
        if self.clear_to_send is None:
            return
        for name in algorithms:
            if is_in_network(name):
                raise KeyProblem(
                    f"{key}.clear_to_send",
                    f"{name} sends aggregation packets, which switches answer, not receivers",
                    valid="leave it out",
                )

    def with_clearances(self, job: Job) -> Job:
        """Return a job whose messages receivers clear, if the item says so."""
        return cleared_job(job, None if self.clear_to_send is None else self.clear_to_send.settings())
