"""What a P4Runtime server stores for controllers is bounded, whatever they do."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from router_program import DIGEST, ROUTES, router_config

from weft.switch.backend import Digest
from weft.switch.p4runtime.digests import MAX_LIST_SIZE, MAX_REMEMBERED, Digests
from weft.switch.p4runtime.errors import RESOURCE_EXHAUSTED, RequestError
from weft.switch.p4runtime.outbox import MAX_WAITING_ARBITRATION, Outbox
from weft.switch.p4runtime.pipeline import bind
from weft.switch.p4runtime.read_answer import MAX_BYTES, MAX_ENTITIES, ReadAnswer
from weft.switch.p4runtime.translation import Ports

LEARN_LIST = 1


def entry(metadata: bytes = b"") -> p4r.Entity:
    return p4r.Entity(table_entry=p4r.TableEntry(table_id=ROUTES, metadata=metadata))


@pytest.mark.parametrize("sizes", [[0] * (2 * MAX_ENTITIES + 1), [MAX_BYTES // 3] * 7, [1, 2 * MAX_BYTES, 1], []])
def test_a_read_is_answered_in_order_by_bounded_messages(sizes: list[int]) -> None:
    answer = ReadAnswer()
    expected = [entry(index.to_bytes(2, "big") + bytes(size)) for index, size in enumerate(sizes)]
    answer.add(expected)
    messages = list(answer.messages())
    assert [each for message in messages for each in message.entities] == expected
    for message in messages:
        assert 0 < len(message.entities) <= MAX_ENTITIES
        assert len(message.entities) == 1 or sum(each.ByteSize() for each in message.entities) <= MAX_BYTES


def test_a_controller_that_does_not_read_its_arbitration_updates_loses_its_stream() -> None:
    outbox = Outbox()
    for _ in range(MAX_WAITING_ARBITRATION + 5):
        outbox.put(p4r.StreamMessageResponse(arbitration={}))
    assert list(outbox) == []
    assert isinstance(outbox.failure, RequestError)
    assert outbox.failure.code == RESOURCE_EXHAUSTED


def learning(config: p4r.DigestEntry.Config) -> Digests:
    digests = Digests(bind(router_config().SerializeToString(), Ports(510)))
    digests.write(p4r.Update.INSERT, p4r.DigestEntry(digest_id=DIGEST, config=config))
    return digests


def digest(number: int) -> Digest:
    return Digest(LEARN_LIST, (number, 1))


def test_a_digest_list_has_a_limit_of_ours_whatever_the_controller_says() -> None:
    digests = learning(p4r.DigestEntry.Config(max_list_size=2**31 - 1, max_timeout_ns=2**62))
    lists = [each for number in range(MAX_LIST_SIZE) for each in digests.on_digest(digest(number), 0)]
    assert [len(each.data) for each in lists] == [MAX_LIST_SIZE]


def test_the_oldest_unacknowledged_digests_are_forgotten() -> None:
    digests = learning(p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=2**62))
    lists = [each for number in range(MAX_REMEMBERED) for each in digests.on_digest(digest(number), 0)]
    assert len(lists) == MAX_REMEMBERED
    assert digests.on_digest(digest(0), 1) == []
    assert len(digests.on_digest(digest(MAX_REMEMBERED), 1)) == 1
    assert len(digests.on_digest(digest(0), 1)) == 1  # forgotten, so it comes again
    assert digests.on_digest(digest(2), 1) == []
    digests.acknowledge(p4r.DigestListAck(digest_id=DIGEST, list_id=lists[2].list_id))
    assert len(digests.on_digest(digest(2), 1)) == 1
