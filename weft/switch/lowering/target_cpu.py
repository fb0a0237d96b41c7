"""The processor that programs are compiled for: this one, or the level that `WEFT_CPU` names.

A level is one of the x86-64 psABI's. Code for a level is the same on all machines that have it, so its instructions can
be counted on one machine and compared on another (benchmarks/bench_gate.py).
"""

from __future__ import annotations

import os

import llvmlite.binding as llvm

from weft.switch.lowering.errors import UnsupportedError

VARIABLE = "WEFT_CPU"
LEVELS = {"x86-64": "sse2", "x86-64-v2": "sse4.2", "x86-64-v3": "avx2", "x86-64-v4": "avx512f"}
"""By name, the newest feature of a level that tells whether a processor has it."""


def target_cpu() -> tuple[str, str]:
    """Return LLVM's name and features of the processor to compile for.

    Raises UnsupportedError if `WEFT_CPU` is neither empty nor a level, or one that this processor lacks.
    """
    level = os.environ.get(VARIABLE, "")
    features = llvm.get_host_cpu_features()
    if not level:
        return llvm.get_host_cpu_name(), features.flatten()
    if level not in LEVELS:
        raise UnsupportedError(f"machine code for {VARIABLE}={level}: give one of {', '.join(LEVELS)}, or none")
    if not features.get(LEVELS[level]):
        raise UnsupportedError(f"machine code for {VARIABLE}={level} here: this processor lacks {LEVELS[level]}")
    return level, ""
