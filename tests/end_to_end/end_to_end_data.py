"""Inputs of the end-to-end tests."""

import numpy as np

ALGORITHMS = ["ring", "in-network"]


def buffers(dtype, count, ranks, seed=7):
    generator = np.random.default_rng(seed)
    if dtype == np.int32:
        return [generator.integers(-(2**31), 2**31, count, dtype=np.int64).astype(np.int32) for _ in range(ranks)]
    scales = np.float32(10.0) ** generator.integers(-20, 20, count)
    return [(generator.standard_normal(count) * scales).astype(np.float32) for _ in range(ranks)]
