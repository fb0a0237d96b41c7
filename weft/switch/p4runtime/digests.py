"""Digests (P4Runtime §9.8): configuration, and buffering of digest lists.

Pure logic, from events and the time to lists.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from finsy.proto import p4i, p4r

from weft.switch.backend import Digest
from weft.switch.p4runtime.data import encode_digest
from weft.switch.p4runtime.errors import check_existence, invalid, place
from weft.switch.p4runtime.pipeline import Pipeline, lookup

MAX_LIST_SIZE = 1000
"""Most digests in one list, even if the controller sets a higher limit."""
MAX_REMEMBERED = 65_536
"""Most unacknowledged digests; beyond this the oldest list is forgotten, and its digests may be sent again."""


@dataclass(slots=True)
class _Stream:
    """One enabled digest: digests waiting to be sent, and digests sent but not acknowledged."""

    info: p4i.Digest
    config: p4r.DigestEntry.Config
    widths_bits: tuple[int, ...]
    waiting: dict[tuple[int, ...], None] = field(default_factory=dict)
    first_waiting_ns: int = 0
    unacknowledged: OrderedDict[int, tuple[int, list[tuple[int, ...]]]] = field(default_factory=OrderedDict)
    """Send time and digests of each list, in order of sending."""
    remembered: set[tuple[int, ...]] = field(default_factory=set)
    """All digests in `unacknowledged`, which has no duplicates."""

    def is_duplicate(self, values: tuple[int, ...]) -> bool:
        return values in self.waiting or values in self.remembered

    def remember(self, list_id: int, sent_ns: int, digests: list[tuple[int, ...]]) -> None:
        self.unacknowledged[list_id] = (sent_ns, digests)
        self.remembered.update(digests)
        while len(self.remembered) > MAX_REMEMBERED:
            self.forget(next(iter(self.unacknowledged)))

    def forget(self, list_id: int) -> None:
        _, digests = self.unacknowledged.pop(list_id, (0, []))
        self.remembered.difference_update(digests)


class Digests:
    """All digests of a device."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._streams: dict[int, _Stream] = {}
        self._last_list_id = 0
        by_name = {info.preamble.name: number for number, info in pipeline.digests.items()}
        self._digest_ids = {
            number: by_name[learn_list.name]
            for number, learn_list in pipeline.program.learn_lists.items()
            if learn_list.name in by_name
        }

    def write(self, update_type: int, message: p4r.DigestEntry) -> None:
        """Enable (INSERT), configure (MODIFY) or disable (DELETE) a digest."""
        info = lookup(self._pipeline.digests, message.digest_id, "digest")
        with place(f"digest {info.preamble.name!r}"):
            check_existence(update_type, message.digest_id in self._streams)
            if update_type == p4r.Update.DELETE:
                del self._streams[message.digest_id]
                return
            config = p4r.DigestEntry.Config()
            config.CopyFrom(message.config)
            if config.max_timeout_ns < 0 or config.max_list_size < 0 or config.ack_timeout_ns < 0:
                raise invalid("max_timeout_ns, max_list_size and ack_timeout_ns cannot be negative")
            if update_type == p4r.Update.MODIFY:
                self._streams[message.digest_id].config = config
            else:
                self._streams[message.digest_id] = _Stream(info, config, self._widths_bits(info))

    def _widths_bits(self, info: p4i.Digest) -> tuple[int, ...]:
        lists = self._pipeline.program.learn_lists.values()
        learn_list = next(each for each in lists if each.name == info.preamble.name)
        return tuple(getattr(element, "width_bits", 0) for element in learn_list.elements)

    def read(self, query: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
        """Yield the configuration of the digest with the query's id; of all enabled ones for 0."""
        if query.digest_id:
            lookup(self._pipeline.digests, query.digest_id, "digest")
        for number, stream in self._streams.items():
            if query.digest_id in (0, number):
                yield p4r.DigestEntry(digest_id=number, config=stream.config)

    def on_digest(self, event: Digest, now_ns: int) -> list[p4r.DigestList]:
        """Add a digest from the data plane; return the lists that it completes."""
        stream = self._streams.get(self._digest_ids.get(event.learn_list_id, 0))
        if stream is None:
            return []
        self._expire(stream, now_ns)
        if stream.is_duplicate(event.values):
            return []
        if not stream.waiting:
            stream.first_waiting_ns = now_ns
        stream.waiting[event.values] = None
        limit = min(stream.config.max_list_size or MAX_LIST_SIZE, MAX_LIST_SIZE)
        if stream.config.max_timeout_ns == 0 or len(stream.waiting) >= limit:
            return [self._flush(stream, now_ns)]
        return []

    def on_time(self, now_ns: int) -> list[p4r.DigestList]:
        """Return the lists that have reached max_timeout_ns."""
        due = []
        for stream in self._streams.values():
            self._expire(stream, now_ns)
            if stream.waiting and now_ns - stream.first_waiting_ns >= stream.config.max_timeout_ns:
                due.append(self._flush(stream, now_ns))
        return due

    def next_deadline_ns(self) -> int | None:
        """Return when `on_time` must be called next, None if no digest waits."""
        deadlines = [
            stream.first_waiting_ns + stream.config.max_timeout_ns
            for stream in self._streams.values()
            if stream.waiting
        ]
        return min(deadlines, default=None)

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Process a controller's acknowledgement of a list. INVALID_ARGUMENT for an unknown digest."""
        lookup(self._pipeline.digests, message.digest_id, "digest")
        stream = self._streams.get(message.digest_id)
        if stream is not None:
            stream.forget(message.list_id)

    def _expire(self, stream: _Stream, now_ns: int) -> None:
        oldest_ns = now_ns - stream.config.ack_timeout_ns
        while stream.unacknowledged:
            list_id, (sent_ns, _) = next(iter(stream.unacknowledged.items()))
            if sent_ns > oldest_ns:
                break
            stream.forget(list_id)

    def _flush(self, stream: _Stream, now_ns: int) -> p4r.DigestList:
        self._last_list_id += 1
        types = self._pipeline.config.p4info.type_info
        message = p4r.DigestList(digest_id=stream.info.preamble.id, list_id=self._last_list_id, timestamp=now_ns)
        for values in stream.waiting:
            message.data.append(encode_digest(values, stream.widths_bits, stream.info.type_spec, types))
        if stream.config.ack_timeout_ns:
            stream.remember(self._last_list_id, now_ns, list(stream.waiting))
        stream.waiting = {}
        return message
