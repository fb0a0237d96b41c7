"""A fabric, a profile and a folder for lists of flows: tests make their trials with them."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from weft.bench.profile import Profile
from weft.bench.subject import Subject
from weft.bench.variants import Changes, Variant, changed, with_variant
from weft.errors import BadInputError
from weft.system.writing import written_whole
from weft.traffic.patterns import Flow
from weft.trials import Trial

_Value = TypeVar("_Value")


class NotApplicableError(BadInputError):
    """A fabric cannot have a test; says why."""


@dataclass(frozen=True)
class Setup:
    """A fabric as a test finds it.

    Attributes:
        subject: the fabric, with the variant's transport and load balancing.
        base: the fabric as its file has it.
        variant: the one that the test runs under.
        profile: how much of the draft's procedure is run.
        folder: of lists of flows, absolute.
        seed: the first seed.
    """

    subject: Subject
    base: Subject
    variant: Variant
    profile: Profile
    folder: Path
    seed: int

    def choose(self, *, smoke: _Value, standard: _Value, full: _Value) -> _Value:
        """Return the value for the profile; `full` is the draft's."""
        return self.profile.of(smoke=smoke, standard=standard, full=full)

    def under(self, variant: Variant) -> Setup:
        """Return the same with another variant of the fabric as its file has it.

        Raises:
            NotApplicableError: the fabric does not go with it.
        """
        try:
            subject = with_variant(self.base, variant)
        except BadInputError as error:
            raise NotApplicableError(error) from error
        return Setup(subject, self.base, variant, self.profile, self.folder, self.seed)

    def trial(
        self,
        label: str,
        traffic: Sequence[Mapping[str, Any]],
        changes: Changes | None = None,
        *,
        iteration: int = 0,
        **sections: Any,
    ) -> Trial:
        """Return a trial on the fabric.

        Args:
            label: for people; says what distinguishes the trial from others.
            traffic: the scenario's items.
            changes: of the fabric's scenario, by dotted path; None removes a key.
            iteration: trials with another number have another seed.
            sections: further keys of the scenario, such as `observe` and `events`.
        """
        tree = changed(self.subject.tree, changes or {})
        own = {"clock": "virtual", "seed": self.seed + iteration, "traffic": list(traffic), **sections}
        return Trial(label, {**tree, **own})

    def flows(self, flows: Iterable[Flow]) -> dict[str, Any]:
        """Return an item of traffic that runs flows; their list is a file named by its contents."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("source", "destination", "size", "start", "plane", "queue_pairs"))
        for each in flows:
            writer.writerow(
                (each.source, each.destination, each.size_bytes, f"{each.start_ps}ps", each.plane, each.queue_pairs)
            )
        return {"flow_list": str(self.kept("flows", text.getvalue())), "format": "flow_csv", "data": "lengths"}

    def kept(self, name: str, content: str) -> Path:
        """Return the path of a CSV file with this content, named by it, in the folder."""
        path = self.folder / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:16]}.csv"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as partial:
                partial.write_text(content, encoding="utf-8")
        return path

    def transfer(
        self, source: int, destination: int, size_bytes: int, start_ps: int = 0, queue_pairs: int = 1
    ) -> list[Flow]:
        """Return the flows of one transfer over all NICs of its source, each of an equal part."""
        if self.subject.spans_planes or self.subject.nics == 1:
            return [Flow(source, destination, size_bytes, 0, start_ps, min(queue_pairs, size_bytes))]
        part = max(1, size_bytes // self.subject.nics)
        return [
            Flow(source, destination, part, nic, start_ps, min(queue_pairs, part)) for nic in range(self.subject.nics)
        ]

    def require_hosts(self, ranks: int, what: str) -> None:
        """Raise NotApplicableError if the fabric has fewer endpoints."""
        if self.subject.ranks < ranks:
            raise NotApplicableError(f"{what} takes {ranks} endpoints; the fabric has {self.subject.ranks}")

    def require_pfc(self) -> None:
        """Raise NotApplicableError if no class of the fabric has PFC."""
        if not self.subject.spec.options.pfc.classes:
            raise NotApplicableError("the fabric has no PFC (pfc.classes)")
