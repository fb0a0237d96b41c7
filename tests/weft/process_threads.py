"""Threads that stand for the processes of a run, and queues between them for MPI."""

import pickle
import threading
from collections.abc import Callable
from queue import Queue
from typing import Any

from weft.clocks.virtual.processes import Processes


class ThreadProcess:
    """See `weft.clocks.virtual.processes.Processes`; `queues[a][b]` has what a sends to b."""

    def __init__(self, number: int, queues: list[list[Queue[Any]]]) -> None:
        self.number, self.count = number, len(queues)
        self._queues = queues
        self._failure: BaseException | None = None

    def of(self, owner: int, what: str, read: Callable[[], Any]) -> Any:
        self._require_no_failure()
        if owner == self.number:
            try:
                value = read()
            except Exception as error:
                self.fail(error)
                raise
            message = pickle.dumps((what, value))
            for other in range(self.count):
                self._queues[self.number][other].put(message)
        its_what, value = pickle.loads(self._get(owner))
        assert its_what == what
        return value

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        self._require_no_failure()
        for other, message in enumerate(messages):
            self._queues[self.number][other].put(message)
        return [self._get(other) for other in range(self.count)]

    def _get(self, other: int) -> Any:
        received = self._queues[other][self.number].get(timeout=30)
        if isinstance(received, BaseException):
            raise received
        return received

    def _require_no_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def fail(self, error: BaseException) -> BaseException:
        if self._failure is None:
            self._failure = error
            for other in range(self.count):
                self._queues[self.number][other].put(error)
        return self._failure


def in_processes(count: int, run: Callable[[Processes], Any]) -> list[Any]:
    """Return what `run` returns in each of as many processes; raises what the first of them has raised."""
    queues: list[list[Queue[Any]]] = [[Queue() for _ in range(count)] for _ in range(count)]
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def one(number: int) -> None:
        process = ThreadProcess(number, queues)
        try:
            results[number] = run(process)
        except BaseException as error:
            errors.append(error)
            process.fail(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
