"""Requests of verbs providers and their answers, as engine/verbs/protocol.hpp declares them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.engine import _core

MAGIC: int = _core.VERBS_MAGIC
VERSION: int = _core.VERBS_VERSION
MAX_MESSAGE_BYTES: int = _core.VERBS_MESSAGE_BYTES
_HEADER = struct.Struct("=II")
_ANSWER_HEADER = struct.Struct("=iI")
_EMPTY = ["none"]


class MalformedRequestError(ValueError):
    """A message is no request."""


@dataclass(frozen=True)
class RequestKind:
    """A request: its name, and the names of the fields of the question and of the answer."""

    name: str
    question: tuple[str, ...]
    answer: tuple[str, ...]

    @property
    def _format(self) -> str:
        return f"={len(self.question)}Q"

    def fields_of(self, body: bytes) -> dict[str, int]:
        """Return a question's fields. Raises MalformedRequestError for another size."""
        if len(body) != struct.calcsize(self._format):
            raise MalformedRequestError(f"{self.name} of {len(body)} B, not {struct.calcsize(self._format)}")
        return dict(zip(self.question, struct.unpack(self._format, body), strict=True))

    def answer_bytes(self, fields: Mapping[str, int]) -> bytes:
        """Return an answer's fields as they travel."""
        values = [0] if list(self.answer) == _EMPTY else [fields[name] for name in self.answer]
        return struct.pack(f"={len(values)}Q", *values)


KINDS = tuple(RequestKind(name, tuple(question), tuple(answer)) for name, question, answer in _core.verbs_requests())


def read_request(message: bytes) -> tuple[RequestKind, dict[str, int]]:
    """Return what a message asks for, and its fields. Raises MalformedRequestError."""
    if len(message) < _HEADER.size:
        raise MalformedRequestError(f"a request of {len(message)} B")
    number, length = _HEADER.unpack_from(message)
    if number >= len(KINDS) or length != len(message):
        raise MalformedRequestError(f"request {number} of {length} B, in {len(message)}")
    return KINDS[number], KINDS[number].fields_of(message[_HEADER.size :])


def answered(kind: RequestKind, fields: Mapping[str, int], descriptors: Sequence[int]) -> bytes:
    """Return the answer to a request that was carried out."""
    return _ANSWER_HEADER.pack(0, len(descriptors)) + kind.answer_bytes(fields)


def refused(error: int) -> bytes:
    """Return the answer to a request that was not, for the reason of an errno."""
    return _ANSWER_HEADER.pack(error, 0)
