"""Accelerators: compute rate, memory and memory bandwidth from data sheets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.quantities.definitions import SIZE, number
from weft.quantities.example import Example
from weft.quantities.section import Section

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8"]
"""Number format of matrix product operands."""

PRECISION_BYTES: dict[str, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1}
"""Bytes of an element."""

Tera = Annotated[float, number(0, 1e6, above=True, example="312")]
Memory = Annotated[int, SIZE.between(2**20, 2**50, example="80GiB")]
Bandwidth = Annotated[float, number(1, 1e6, example="3350")]


class Accelerator(Section):
    """An accelerator. Each rank of a job has one."""

    peak_tflops: Annotated[dict[Precision, Tera], Example("{bf16: 989, fp8: 1979}")] = Field(min_length=1)
    """10^12 floating-point operations per second by precision, without sparsity."""
    memory: Memory
    """Memory capacity."""
    memory_bandwidth_gb_per_s: Bandwidth
    """Memory bandwidth, in 10^9 bytes per second."""
    efficiency: Annotated[float, number(0, 1, above=True, example="0.5"), Example("0.6")] = 0.5
    """Average share of the peak rate that computation reaches while it is not waiting for communication."""
    memory_efficiency: Annotated[float, number(0, 1, above=True, example="0.8")] = 1.0
    """Average share of the memory bandwidth that memory-bound work reaches: decode iterations, short prompts,
    optimizers."""

    @property
    def memory_bytes_per_s(self) -> float:
        """Memory bandwidth reached, in bytes per second."""
        return self.memory_bandwidth_gb_per_s * 1e9 * self.memory_efficiency

    def flops_per_s(self, precision: Precision) -> float:
        """Return the operations per second reached. Raises ValueError for a precision without a peak rate."""
        if precision not in self.peak_tflops:
            raise ValueError(f"{precision} (valid for this accelerator: {', '.join(self.peak_tflops)})")
        return self.peak_tflops[precision] * 1e12 * self.efficiency


def _gb(gigabytes: int) -> int:
    # Vendors write GB for the capacity of HBM stacks, which are binary.
    return gigabytes * 2**30


_H100 = Accelerator(
    peak_tflops={"fp8": 1979, "bf16": 989.5, "fp16": 989.5, "tf32": 494.5, "fp32": 67},
    memory=_gb(80),
    memory_bandwidth_gb_per_s=3350,
)
ACCELERATORS: dict[str, Accelerator] = {
    # NVIDIA V100 data sheet (2020), SXM2.
    "V100": Accelerator(peak_tflops={"fp16": 125, "fp32": 15.7}, memory=_gb(32), memory_bandwidth_gb_per_s=900),
    # NVIDIA A100 data sheet (2021), 80GB SXM.
    "A100": Accelerator(
        peak_tflops={"bf16": 312, "fp16": 312, "tf32": 156, "fp32": 19.5},
        memory=_gb(80),
        memory_bandwidth_gb_per_s=2039,
    ),
    # NVIDIA H100 data sheet (2023), SXM; without sparsity, half the figures that include it.
    "H100": _H100,
    # An H100 with 400 instead of 900 GB/s of NVLink (DeepSeek-AI 2025, "Insights into DeepSeek-V3", section 4.1).
    "H800": _H100,
    # NVIDIA H200 data sheet (2024), SXM.
    "H200": Accelerator(peak_tflops=_H100.peak_tflops, memory=_gb(141), memory_bandwidth_gb_per_s=4800),
    # AMD Instinct MI300X data sheet (2023).
    "MI300X": Accelerator(
        peak_tflops={"fp8": 2614.9, "bf16": 1307.4, "fp16": 1307.4, "tf32": 653.7, "fp32": 163.4},
        memory=_gb(192),
        memory_bandwidth_gb_per_s=5300,
    ),
    # Jouppi et al. 2023, "TPU v4", table 4.
    "TPU-v4": Accelerator(peak_tflops={"bf16": 275}, memory=_gb(32), memory_bandwidth_gb_per_s=1200),
    # Google Cloud documentation, "TPU v5p".
    "TPU-v5p": Accelerator(peak_tflops={"bf16": 459}, memory=_gb(95), memory_bandwidth_gb_per_s=2765),
}
"""Accelerators by name."""
