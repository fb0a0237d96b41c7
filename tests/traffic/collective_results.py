"""What every rank holds after a collective, by NumPy."""

import numpy as np
from schedule_interpreter import UFUNC

from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.schedule_nodes import DataType
from weft.traffic.schedules import CollectiveSpec


def inputs_of(spec: CollectiveSpec, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    if spec.dtype is DataType.INT32:
        return [
            generator.integers(-(2**31), 2**31, spec.element_count, np.int32) for _ in range(spec.rank_count)
        ]
    return [generator.standard_normal(spec.element_count).astype(np.float32) for _ in range(spec.rank_count)]


def assert_right(collective: str, spec: CollectiveSpec, inputs: list[np.ndarray], results: list[np.ndarray]):
    """Integers, maxima and what is only moved are exact; a float sum differs by n - 1 roundings at most."""
    reduced = UFUNC[spec.operation].reduce(inputs, dtype=spec.dtype.value)
    chunks = [slice(spec.chunk(rank).start, spec.chunk(rank).stop) for rank in range(spec.rank_count)]
    everything = slice(None)
    for rank, result in enumerate(results):
        match collective:
            case "allreduce":
                where, expected = everything, reduced
            case "reducescatter":
                where, expected = chunks[rank], reduced[chunks[rank]]
            case "allgather":
                where = everything
                expected = np.concatenate([inputs[r][chunk] for r, chunk in enumerate(chunks)])
            case "alltoall":
                where, expected = everything, np.concatenate([each[chunks[rank]] for each in inputs])
            case "moe_dispatch":
                came = COLLECTIVE_KINDS[collective].choice.dispatch(spec)
                tokens = [(each.source, came.tokens[each.token]) for each in came.received[rank]]
                expected = np.concatenate([inputs[source][list(token)] for source, token in tokens] or [[]])
                where = slice(0, len(expected))
            case "barrier":
                where, expected = everything, inputs[rank]
            case "broadcast":
                where, expected = everything, inputs[spec.root]
            case "reduce":
                if rank != spec.root:
                    continue
                where, expected = everything, reduced
        if spec.dtype is DataType.INT32:
            np.testing.assert_array_equal(result[where], expected)
        else:
            magnitude = np.sum(np.abs(inputs), axis=0, dtype=np.float64)
            bound = (spec.rank_count - 1) * 2.0**-23 * magnitude[where]
            assert np.all(np.abs(result[where].astype(np.float64) - expected) <= 2 * bound)
