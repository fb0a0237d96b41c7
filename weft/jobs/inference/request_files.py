"""Reads requests from CSV files with the columns of the Azure LLM inference traces.

Their columns are TIMESTAMP, ContextTokens and GeneratedTokens (Patel et al. 2024, "Splitwise"; Stojkovic et al. 2025,
"DynamoLLM"). A timestamp is a date and a time of day, with an offset or without, or a number of seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np

from weft.errors import BadInputError, InvalidValueError
from weft.jobs.inference.requests import LONGEST_PS, MAX_REQUESTS, MAX_TOKENS, Requests
from weft.jobs.traces.tables.lines import csv_rows, whole
from weft.quantities.units import NS_PER_S, PS_PER_NS, shown

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_SECONDS = re.compile(r"(\d{1,12})(?:\.(\d{1,12}))?", re.ASCII)
_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


def read_requests(path: Path, count: int | None = None) -> Requests:
    """Return the first `count` requests of a file, all for None; the earliest arrives at 0.

    Raises BadInputError, with file and line, for another kind of table, values out of range, and no or too many rows.
    """
    most = MAX_REQUESTS + 1 if count is None else count
    try:
        rows = [
            (
                row.read("TIMESTAMP", nanoseconds),
                row.read("ContextTokens", whole(1, MAX_TOKENS)),
                row.read("GeneratedTokens", whole(1, MAX_TOKENS)),
            )
            for row in islice(csv_rows(path, COLUMNS, ()), most)
        ]
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror or error}", place=path) from None
    if not 1 <= len(rows) <= MAX_REQUESTS:
        found = f"more than {MAX_REQUESTS:,}" if rows else "no"
        raise BadInputError(f"{found} requests", place=path, valid=f"1 to {MAX_REQUESTS:,}")
    first_ns = min(row[0] for row in rows)
    last_ns = max(row[0] for row in rows)
    if (last_ns - first_ns) * PS_PER_NS > LONGEST_PS:
        longest_s = LONGEST_PS // PS_PER_NS // NS_PER_S
        raise BadInputError(
            f"requests arrive over {(last_ns - first_ns) // NS_PER_S} s",
            place=path,
            valid=f"up to {longest_s} s",
        )
    arrivals = np.array([(row[0] - first_ns) * PS_PER_NS for row in rows], np.int64)
    order = np.argsort(arrivals, kind="stable")
    prompts, outputs = (np.array([row[column] for row in rows], np.int64)[order] for column in (1, 2))
    return Requests(arrivals[order], prompts, outputs)


def nanoseconds(text: str) -> int:
    """Return a timestamp in ns; dates count from 1970, in UTC unless an offset is given. Raises ValueError."""
    if found := _SECONDS.fullmatch(text):
        return int(found[1]) * NS_PER_S + _fraction_ns(found[2])
    found = _DATE.fullmatch(text)
    if found is None:
        raise InvalidValueError(f"{shown(text)}", valid="2023-11-16 18:17:03.9799600, or seconds")
    try:
        moment = datetime.fromisoformat(found[1] + (found[3] or ""))
    except ValueError:
        raise ValueError(f"{shown(text)} is not a valid date and time") from None
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * NS_PER_S + _fraction_ns(found[2])


def _fraction_ns(digits: str | None) -> int:
    return int((digits or "0")[:9].ljust(9, "0"))
