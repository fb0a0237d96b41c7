"""A rank's part in every collective, over Weft and over gloo in turn: the same results, to the bit but for sums.

torchrun runs it; the default group is Weft's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int32, torch.int64, torch.int8, torch.uint8]
OPERATIONS = [dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
OF_BITS = [dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR]


def data(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 * dist.get_rank() + seed)
    return (torch.rand(*shape, generator=generator) * 50).to(dtype)


def compare(name: str, call: Callable[[Any], Any], tolerance: float = 0.0) -> None:
    """Call over both groups and compare all tensors that the call returns."""
    found, expected = call(WEFT), call(GLOO)
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, rtol=tolerance, atol=tolerance, msg=lambda text: f"{name}: {text}")


def reductions(group: Any, dtype: torch.dtype, operation: Any) -> list[torch.Tensor]:
    reduced, rooted = data(dtype, 3, 5), data(dtype, 7)
    dist.all_reduce(reduced, operation, group=group)
    dist.reduce(rooted, 1, operation, group=group)
    return [reduced, *([rooted] if dist.get_rank() == 1 else [])]


def moves(group: Any, dtype: torch.dtype) -> list[torch.Tensor]:
    rank, world = dist.get_rank(), dist.get_world_size()
    sent, chunk = data(dtype, 5), data(dtype, 3)
    dist.broadcast(sent, 1, group=group)
    gathered = [torch.zeros(3, dtype=dtype) for _ in range(world)]
    dist.all_gather(gathered, chunk, group=group)
    joined = torch.zeros(world * 3, dtype=dtype)
    dist.all_gather_into_tensor(joined, chunk, group=group)
    at_root = [torch.zeros(3, dtype=dtype) for _ in range(world)] if rank == 0 else None
    dist.gather(chunk, at_root, 0, group=group)
    own = torch.zeros(3, dtype=dtype)
    dist.scatter(own, [data(dtype, 3, seed=each) for each in range(world)] if rank == 1 else None, 1, group=group)
    return [sent, *gathered, joined, *(at_root or []), own]


def exchanges(group: Any, dtype: torch.dtype) -> list[torch.Tensor]:
    rank, world = dist.get_rank(), dist.get_world_size()
    even = torch.zeros(world * 2, 3, dtype=dtype)
    dist.all_to_all_single(even, data(dtype, world * 2, 3), group=group)
    # Rank r sends r + 1 rows to everybody.
    uneven = torch.zeros(sum(range(1, world + 1)), 3, dtype=dtype)
    dist.all_to_all_single(
        uneven, data(dtype, world * (rank + 1), 3), list(range(1, world + 1)), [rank + 1] * world, group=group
    )
    return [even, uneven]


def messages(group: Any) -> list[torch.Tensor]:
    rank, world = dist.get_rank(), dist.get_world_size()
    got = torch.zeros(4, dtype=torch.int64)
    if rank % 2:
        dist.recv(got, rank - 1, group=group)
        dist.send(got + 1, rank - 1, group=group)
    else:
        dist.send(data(torch.int64, 4), rank + 1, group=group)
        dist.recv(got, rank + 1, group=group)
    around = torch.zeros(2)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, data(torch.float32, 2), (rank + 1) % world, group),
            dist.P2POp(dist.irecv, around, (rank - 1) % world, group),
        ]
    )
    for work in works:
        work.wait()
    return [got, around]


def own_results() -> dict[str, Any]:
    """What gloo has not: reduce-scatters, averages, lists of tensors for everybody."""
    rank, world = dist.get_rank(), dist.get_world_size()
    results: dict[str, Any] = {}
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int16):
        out = torch.zeros(2, dtype=dtype)
        dist.reduce_scatter_tensor(out, torch.arange(2 * world).to(dtype))
        results[f"reduce_scatter_tensor {dtype}"] = out.tolist()
    out = torch.zeros(2)
    dist.reduce_scatter(out, [torch.full((2,), float(rank + each)) for each in range(world)], dist.ReduceOp.MAX)
    results["reduce_scatter"] = out.tolist()
    for dtype in (*FLOATS, *INTEGERS, torch.int16):
        mean = torch.full((3,), rank).to(dtype)
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        results[f"average {dtype}"] = mean.tolist()
    lists = [torch.zeros(1 + rank, dtype=torch.int16) for _ in range(world)]
    dist.all_to_all(lists, [torch.full((1 + each,), rank, dtype=torch.int16) for each in range(world)])
    results["all_to_all"] = [each.tolist() for each in lists]
    pair = dist.new_group([0, 1], backend="weft")
    if rank < 2:
        both = torch.full((2,), float(rank + 1))
        dist.all_reduce(both, group=pair)
        results["pair"] = both.tolist()
    objects: list[Any] = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    results["objects"] = objects
    works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(3)]
    results["async"] = [work.wait() for work in works]
    empty = torch.zeros(0)
    dist.all_reduce(empty)
    dist.barrier()
    return results


def refusals() -> dict[str, str]:
    texts = {}
    for name, call in {
        "product": lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.PRODUCT),
        "average of bool": lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool), dist.ReduceOp.AVG),
        "bits of floats": lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND),
        "sizes": lambda: dist.all_gather_into_tensor(torch.zeros(3), torch.zeros(1)),
        "any source": lambda: dist.recv(torch.zeros(1)),
    }.items():
        try:
            call()
        except (ValueError, RuntimeError) as error:
            texts[name] = str(error)
    return texts


if __name__ == "__main__":
    dist.init_process_group("weft")
    WEFT, GLOO = dist.group.WORLD, dist.new_group(backend="gloo")
    for kind in (*FLOATS, *INTEGERS):
        for reduction in (*OPERATIONS, *(OF_BITS if kind in INTEGERS else ())):
            bound = {
                torch.float32: 1e-5,
                torch.float64: 1e-12,
                torch.float16: 2e-2,
                torch.bfloat16: 2e-1,
            }.get(kind, 0)
            compare(
                f"{reduction} of {kind}",
                lambda group, kind=kind, reduction=reduction: reductions(group, kind, reduction),
                bound if reduction == dist.ReduceOp.SUM else 0,
            )
        compare(f"moves of {kind}", lambda group, kind=kind: moves(group, kind))
        compare(f"exchanges of {kind}", lambda group, kind=kind: exchanges(group, kind))
    compare("messages", messages)
    found = {"results": own_results(), "refusals": refusals()}
    with open(f"{sys.argv[1]}/rank{dist.get_rank()}.json", "w", encoding="utf-8") as file:
        json.dump(found, file)
    dist.destroy_process_group()
