"""Notes that the manager stores with a job's entry on a switch, so that another controller can continue from them.

P4Runtime stores such a note with an entry and returns it (`metadata` of a TableEntry, P4Runtime 1.4, section 9.1);
packets never see it. The rest of a job is in the entries' parameters.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from weft.controller.errors import JobError
from weft.controller.tenants import WHOLE, exceeds

MOST_NOTE_BYTES = 4096


@dataclass(frozen=True)
class JobNote:
    """A job's tenant, its promised share of each link, and the workers attached to the switch.

    `workers` are their numbers in the whole job, in order of their ranks at the switch.
    """

    tenant: str = ""
    share: float = 0.0
    workers: tuple[int, ...] = ()

    def as_bytes(self) -> bytes:
        """Return the note as stored with an entry."""
        fields = {"tenant": self.tenant, "share": self.share, "workers": self.workers}
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def of(cls, data: bytes) -> JobNote:
        """Parse a note. Raises JobError if it is invalid."""
        try:
            fields: Any = json.loads(data[:MOST_NOTE_BYTES])
            note = cls(fields["tenant"], float(fields["share"]), tuple(fields["workers"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise JobError(f"its entry has no note of a manager: {error!r}") from None
        is_name = isinstance(note.tenant, str) and note.tenant.isprintable()
        is_share = note.share >= 0 and not exceeds(note.share, WHOLE)  # NaN is none
        if not is_name or not is_share or not all(type(each) is int for each in note.workers):
            raise JobError(f"its entry's note is not a manager's: {data[:80]!r}")
        return note
