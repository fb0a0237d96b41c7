"""Uses /dev/infiniband/rdma_cm in the ways a program may, with the preloaded library: see test_cm_channel.py.

Python's own calls go through the C library's functions that the library stands before.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import stat
import struct
import sys
import threading
from collections.abc import Callable

import pytest

from tests.verbs import ucma_bytes as ucma
from tests.verbs.ucma_bytes import EventBytes

DEVICE = "/dev/infiniband/rdma_cm"
PEER = "10.0.0.2"


class Answer:
    """Memory for an answer."""

    def __init__(self, size: int) -> None:
        self.memory = ctypes.create_string_buffer(size)
        self.at = ctypes.addressof(self.memory)

    @property
    def number(self) -> int:
        return int(struct.unpack_from("=I", self.memory.raw)[0])


def opened(flags: int = 0) -> int:
    return os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC | flags)


def new_id(descriptor: int) -> int:
    answer = Answer(4)
    written = ucma.create_id(response=answer.at)
    assert os.write(descriptor, written) == len(written)
    return answer.number


def next_event(descriptor: int) -> EventBytes:
    answer = Answer(ucma.EVENT_BYTES)
    os.write(descriptor, ucma.get_event(answer.at))
    return EventBytes.read(answer.memory.raw)


def refused(descriptor: int, command: bytes) -> int:
    try:
        os.write(descriptor, command)
    except OSError as error:
        return int(error.errno or 0)
    return 0


def is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def resolve(descriptor: int, number: int) -> None:
    os.write(descriptor, ucma.resolve_addr(number, PEER, 7471))


def looks_like_a_device() -> None:
    descriptor = opened()
    status = os.fstat(descriptor)
    assert stat.S_ISCHR(status.st_mode)
    os.close(descriptor)
    ordinary, _ = socket.socketpair()
    assert stat.S_ISSOCK(os.fstat(ordinary.fileno()).st_mode)


def is_readable_while_events_wait() -> None:
    descriptor = opened()
    poller = select.epoll()
    poller.register(descriptor, select.EPOLLIN)
    numbers = [new_id(descriptor), new_id(descriptor)]
    assert not is_readable(descriptor)
    assert poller.poll(0) == []
    for number in numbers:
        resolve(descriptor, number)
    for left in (1, 0):
        assert is_readable(descriptor)
        assert poller.poll(0) == [(descriptor, select.EPOLLIN)]
        assert next_event(descriptor).name == "ADDR_RESOLVED"
        assert is_readable(descriptor) is bool(left)
    # Events that end with their ID wait no longer.
    os.write(descriptor, ucma.resolve_route(numbers[0]))
    assert is_readable(descriptor)
    os.write(descriptor, ucma.destroy_id(numbers[0], Answer(4).at))
    assert not is_readable(descriptor)


def waits_or_does_not() -> None:
    descriptor = opened(os.O_NONBLOCK)
    answer = Answer(ucma.EVENT_BYTES)
    assert refused(descriptor, ucma.get_event(answer.at)) == errno.EAGAIN
    os.set_blocking(descriptor, True)
    number = new_id(descriptor)
    heard: list[EventBytes] = []
    thread = threading.Thread(target=lambda: heard.append(next_event(descriptor)))
    thread.start()
    resolve(descriptor, number)
    thread.join()
    assert [each.name for each in heard] == ["ADDR_RESOLVED"]
    os.set_blocking(descriptor, False)
    assert refused(descriptor, ucma.get_event(answer.at)) == errno.EAGAIN


def is_shared_by_threads() -> None:
    descriptor = opened()
    numbers: list[int] = []
    events: list[EventBytes] = []

    def work() -> None:
        for _ in range(50):
            number = new_id(descriptor)
            numbers.append(number)
            resolve(descriptor, number)
            events.append(next_event(descriptor))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(numbers)) == 200
    assert sorted(each.id for each in events) == sorted(numbers)
    assert not is_readable(descriptor)


def survives_its_copies() -> None:
    descriptor = opened()
    copies = [os.dup(descriptor), os.dup2(descriptor, 500, inheritable=False)]
    number = new_id(descriptor)
    os.close(descriptor)
    for copy in copies:
        assert stat.S_ISCHR(os.fstat(copy).st_mode)
    resolve(copies[0], number)
    assert next_event(copies[1]).id == number
    os.close(copies[0])
    os.write(copies[1], ucma.resolve_route(number))
    assert next_event(copies[1]).name == "ROUTE_RESOLVED"
    os.close(copies[1])
    # The numbers are those of something else now.
    reading, writing = os.pipe()
    os.dup2(writing, 500)
    assert os.write(500, b"ordinary") == 8
    assert os.read(reading, 8) == b"ordinary"


def survives_a_fork() -> None:
    descriptor = opened()
    number = new_id(descriptor)
    child = os.fork()
    if child == 0:
        resolve(descriptor, number)
        os._exit(0 if next_event(descriptor).id == number else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.write(descriptor, ucma.resolve_route(number))
    assert next_event(descriptor).name == "ROUTE_RESOLVED"


def hands_ids_to_another_descriptor() -> None:
    first, second = opened(), opened()
    number = new_id(first)
    resolve(first, number)
    assert is_readable(first)
    assert refused(second, ucma.migrate_id(number, 0, Answer(4).at)) == errno.EINVAL
    answer = Answer(4)
    os.write(second, ucma.migrate_id(number, first, answer.at))
    assert answer.number == 0
    assert not is_readable(first)
    assert next_event(second).id == number


def refuses_what_is_no_command() -> None:
    descriptor = opened()
    assert refused(descriptor, b"") == errno.EINVAL
    assert refused(descriptor, bytes(7)) == errno.EINVAL
    assert refused(descriptor, bytes(8)) == errno.EINVAL
    assert refused(descriptor, bytes(5000)) == errno.EINVAL
    assert refused(descriptor, struct.pack("=IHH", 99, 0, 0)) == errno.EINVAL
    assert refused(descriptor, ucma.set_option(0, 0, 0, 1 << 20)) == errno.EINVAL
    assert new_id(descriptor) >= 0


def says_when_the_server_has_gone() -> None:
    descriptor = opened()
    new_id(descriptor)
    print("kill", flush=True)
    sys.stdin.readline()
    assert refused(descriptor, ucma.create_id(1, response=Answer(4).at)) == errno.ENODEV
    assert refused(descriptor, ucma.get_event(Answer(ucma.EVENT_BYTES).at)) == errno.ENODEV
    with pytest.raises(OSError, match=os.strerror(errno.ENODEV)):
        opened()


USES: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        looks_like_a_device,
        is_readable_while_events_wait,
        waits_or_does_not,
        is_shared_by_threads,
        survives_its_copies,
        survives_a_fork,
        hands_ids_to_another_descriptor,
        refuses_what_is_no_command,
        says_when_the_server_has_gone,
    )
}

if __name__ == "__main__":
    USES[sys.argv[1]]()
