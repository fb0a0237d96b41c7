"""Types of elements: their sizes, how NumPy holds them, and what their numbers are.

NumPy has no bfloat16: its numbers lie in arrays of uint16, which hold their bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

DataTypeName = Literal["float32", "float16", "bfloat16", "int32", "int16", "int8"]
"""Members of `DataType`."""


class DataType(StrEnum):
    """Element type of a collective."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"

    @property
    def element_bytes(self) -> int:
        """Size of an element."""
        return np.dtype(self.storage).itemsize

    @property
    def storage(self) -> str:
        """Name of the NumPy type of arrays that hold such elements."""
        return "uint16" if self is DataType.BFLOAT16 else self.value

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers."""
        return self in FLOAT_FORMATS


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: bits of the fraction, and the largest exponent (IEEE 754, section 3.3)."""

    fraction_bits: int
    largest_exponent: int

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next number."""
        return 2.0**-self.fraction_bits

    @property
    def smallest_subnormal(self) -> float:
        """The smallest number above 0."""
        return 2.0 ** (1 - self.largest_exponent - self.fraction_bits)

    @property
    def infinite_from(self) -> float:
        """Half a step beyond the largest number: from there on rounding to nearest gives infinity (section 4.3.1)."""
        return 2.0 ** (self.largest_exponent + 1) - 2.0 ** (self.largest_exponent - self.fraction_bits - 1)


FLOAT_FORMATS = {
    DataType.FLOAT32: FloatFormat(23, 127),
    DataType.FLOAT16: FloatFormat(10, 15),
    DataType.BFLOAT16: FloatFormat(7, 127),
}


def data_type_of(storage: np.dtype[Any]) -> DataType | None:
    """Return the type of an array's elements by its NumPy or ml_dtypes type; None for others."""
    if storage == np.uint16:
        return DataType.BFLOAT16
    return DataType(storage.name) if storage.name in list(DataType) else None


def numbers(elements: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    """Return elements as numbers that NumPy can compute with: bfloat16 as float32, others as they are."""
    if dtype is not DataType.BFLOAT16:
        return elements
    return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)


def elements_of(values: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    """Return the floats nearest to some numbers (ties to even), or integers, towards zero and modulo their range."""
    if dtype is not DataType.BFLOAT16:
        if values.dtype.kind == "f" and not dtype.is_float:
            values = values.astype(np.int64)
        with np.errstate(over="ignore"):
            return values.astype(dtype.storage)
    # The first of two roundings is to odd, so that the second one rounds as if it were the only one (Boldo and
    # Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
    exact = values.astype(np.float64)
    with np.errstate(over="ignore"):
        near = exact.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(exact)
    cut = np.where(beyond, np.nextafter(near, np.float32(0)), near)
    bits = cut.view(np.uint32) | (near != exact).astype(np.uint32)
    # Half of the last bit kept, or a little less where that bit is even.
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded.astype(np.uint16))
