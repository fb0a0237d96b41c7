"""Orders the steps of all GPUs, and numbers messages: the n-th send to a peer in a channel is its n-th receive."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from weft.engine import ExtensionError
from weft.traffic.msccl.reading import RECEIVING, SENDING, MscclAlgorithm, Step

_Key = tuple[int, int, int]
"""GPU, block, step."""


@dataclass
class OrderedSteps:
    """The steps of all GPUs.

    Attributes:
        of_gpu: the (block, step) numbers of each GPU, in an order in which all dependencies are met.
        sent: the number of the message that a step sends to its peer.
        received: the number of the message that a step receives from its peer.
        slots: the place in chunks of each message (sender, number) among all that a GPU receives.
        slot_chunks: the chunks of all messages that a GPU receives.
    """

    of_gpu: list[list[tuple[int, int]]]
    sent: dict[_Key, int] = field(default_factory=dict)
    received: dict[_Key, int] = field(default_factory=dict)
    slots: list[dict[tuple[int, int], int]] = field(default_factory=list)
    slot_chunks: list[int] = field(default_factory=list)


def ordered_steps(algorithm: MscclAlgorithm, source: str) -> OrderedSteps:
    """Return the steps in order. Raises ExtensionError, with a line, for lone messages and steps that never start."""
    ordered = OrderedSteps([[] for _ in algorithm.gpus])
    sends, receives = _ends(algorithm, source, SENDING), _ends(algorithm, source, RECEIVING)
    numbers: dict[tuple[int, int], int] = {}
    pairs: dict[_Key, _Key] = {}
    ordered.slots = [{} for _ in algorithm.gpus]
    ordered.slot_chunks = [0] * len(algorithm.gpus)
    for link in sorted(sends.keys() | receives.keys()):
        ours, theirs = sends.get(link, []), receives.get(link, [])
        if len(ours) != len(theirs):
            raise ExtensionError(
                f"{source}: gpu {link[0]} sends {len(ours)} messages to gpu {link[1]} in channel {link[2]}, which "
                f"receives {len(theirs)}"
            )
        for sender, receiver in zip(ours, theirs, strict=True):
            count = _step(algorithm, sender).source.count
            if _step(algorithm, receiver).destination.count != count:
                line = _step(algorithm, receiver).line
                raise ExtensionError(f"{source}, line {line}: cnt differs from the send's, which has {count}")
            number = numbers.setdefault(link[:2], 0)
            numbers[link[:2]] += 1
            ordered.sent[sender], ordered.received[receiver] = number, number
            ordered.slots[link[1]][link[0], number] = ordered.slot_chunks[link[1]]
            ordered.slot_chunks[link[1]] += count
            pairs[sender] = receiver
    _order(algorithm, source, pairs, ordered)
    return ordered


def _ends(algorithm: MscclAlgorithm, source: str, kinds: frozenset[str]) -> dict[tuple[int, int, int], list[_Key]]:
    """Return the steps that send (or receive), by sender, receiver and channel."""
    found: dict[tuple[int, int, int], list[_Key]] = {}
    owners: dict[tuple[int, int, int], int] = {}
    for rank, gpu in enumerate(algorithm.gpus):
        for block in gpu.blocks.values():
            link = (rank, block.send, block.channel) if kinds is SENDING else (block.receive, rank, block.channel)
            steps = [(rank, block.number, number) for number, step in enumerate(block.steps) if step.kind in kinds]
            if not steps:
                continue
            if link[0] == link[1]:
                raise ExtensionError(f"{source}, line {block.steps[0].line}: gpu {rank} has itself as a peer")
            if owners.setdefault(link, block.number) != block.number:
                raise ExtensionError(
                    f"{source}, line {block.steps[0].line}: two blocks share a peer and a channel, so the order of "
                    "their messages is not known"
                )
            found[link] = steps
    return found


def _step(algorithm: MscclAlgorithm, key: _Key) -> Step:
    return algorithm.gpus[key[0]].blocks[key[1]].steps[key[2]]


def _order(algorithm: MscclAlgorithm, source: str, pairs: dict[_Key, _Key], ordered: OrderedSteps) -> None:
    after: dict[_Key, list[_Key]] = {}
    waits: dict[_Key, int] = {}
    for rank, gpu in enumerate(algorithm.gpus):
        for block in gpu.blocks.values():
            for number, step in enumerate(block.steps):
                key = (rank, block.number, number)
                waits[key] = 0
                before = [(rank, block.number, number - 1)] if number else []
                if step.after is not None:
                    before.append((rank, *step.after))
                for each in before:
                    after.setdefault(each, []).append(key)
                    waits[key] += 1
    for sender, receiver in pairs.items():
        after.setdefault(sender, []).append(receiver)
        waits[receiver] += 1
    ready = deque(key for key, count in waits.items() if not count)
    done = 0
    while ready:
        key = ready.popleft()
        done += 1
        ordered.of_gpu[key[0]].append(key[1:])
        for each in after.get(key, ()):
            waits[each] -= 1
            if not waits[each]:
                ready.append(each)
    if done < len(waits):
        stuck = next(key for key, count in waits.items() if count)
        line = _step(algorithm, stuck).line
        raise ExtensionError(f"{source}, line {line}: {len(waits) - done} steps wait for each other, or for these")
