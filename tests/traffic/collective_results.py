"""What every rank holds after a collective, by NumPy."""

import numpy as np
from schedule_interpreter import UFUNC

from weft.run.collectives import random_elements
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import FLOAT_FORMATS, numbers
from weft.traffic.schedules import CollectiveSpec


def inputs_of(spec: CollectiveSpec, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [random_elements(generator, spec.dtype, spec.element_count) for _ in range(spec.rank_count)]


def assert_right(collective: str, spec: CollectiveSpec, inputs: list[np.ndarray], results: list[np.ndarray]):
    """Integers, maxima and what is only moved are exact; a float sum differs by n - 1 roundings at most.

    An average differs by one more.
    """
    inputs, results = ([numbers(each, spec.dtype) for each in arrays] for arrays in (inputs, results))
    is_sum = spec.operation.combined_by is Operation.SUM
    wide = np.float64 if spec.dtype.is_float and is_sum else inputs[0].dtype
    reduced = UFUNC[spec.operation].reduce(inputs, dtype=wide)
    if spec.operation is Operation.AVERAGE:
        reduced = reduced / spec.rank_count if spec.dtype.is_float else np.trunc(reduced / spec.rank_count)
    chunks = [slice(spec.chunk(rank).start, spec.chunk(rank).stop) for rank in range(spec.rank_count)]
    everything = slice(None)
    for rank, result in enumerate(results):
        match collective:
            case "allreduce":
                where, expected = everything, reduced
            case "reducescatter":
                where, expected = chunks[rank], reduced[chunks[rank]]
            case "gather" if rank != spec.root:
                continue
            case "scatter":
                where, expected = chunks[rank], inputs[spec.root][chunks[rank]]
            case "allgather" | "gather":
                where = everything
                expected = np.concatenate([inputs[r][chunk] for r, chunk in enumerate(chunks)])
            case "alltoall":
                where, expected = everything, np.concatenate([each[chunks[rank]] for each in inputs])
            case "alltoallv":
                sizes = COLLECTIVE_KINDS[collective].sizes.elements(spec).tolist()
                begins = [sum(row[:rank]) for row in sizes]
                parts = [each[b : b + row[rank]] for each, b, row in zip(inputs, begins, sizes, strict=True)]
                expected = np.concatenate(parts)
                where = slice(0, len(expected))
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
        if not spec.dtype.is_float or not is_sum:
            np.testing.assert_array_equal(result[where], expected)
        else:
            magnitude = np.sum(np.abs(inputs), axis=0, dtype=np.float64)
            bound = spec.rank_count * FLOAT_FORMATS[spec.dtype].epsilon / 2 * magnitude[where]
            assert np.all(np.abs(result[where].astype(np.float64) - expected) <= bound)
