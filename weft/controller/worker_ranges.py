"""Numbers a tree's workers so that the workers below any child of any node are consecutive."""

from __future__ import annotations

from collections.abc import Sequence

from weft.controller.trees import AggregationTree


def worker_ranges(tree: AggregationTree) -> dict[str, range]:
    """Return, by name, the range of workers below each switch of a tree, and each worker's own number.

    Workers are numbered from 0, depth first, so every range is contiguous, whatever the order of the job's ranks.
    """
    ranges: dict[str, range] = {}
    children = {node.switch: node.children for node in tree.nodes}

    def number(name: str, first: int) -> int:
        following = first
        for child in children[name]:
            if child.name in children:
                following = number(child.name, following)
            else:
                ranges[child.name] = range(following, following + 1)
                following += 1
        ranges[name] = range(first, following)
        return following

    number(tree.root.switch, 0)
    return ranges


def worker_numbers(tree: AggregationTree, hosts: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of a job's hosts, in order of their ranks; empty if they equal the ranks."""
    workers = worker_ranges(tree)
    numbers = tuple(workers[host].start for host in hosts)
    return () if numbers == tuple(range(len(numbers))) else numbers
