"""Mathematics with the same result to the last bit on every processor.

NumPy takes the kernels of `@` (BLAS) and of `np.exp`, `np.log` and `np.log1p` (SVML) by what the processor has, and
these differ in the last digits; products differ with the number of threads, too. IEEE 754 defines addition,
multiplication, division and scaling by powers of two exactly, so what is made of these alone does not differ.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_MANTISSA_BITS = 53
# ln 2 in two parts: the higher has zeros at its end, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_EXP_TERMS = 14  # 0.347^15/15! is below 2^-62
_LOG_TERMS = 11  # 0.172^24/25 is below 2^-62


def product(left: ArrayLike, right: ArrayLike) -> Floats:
    """Return the matrix product of two matrices, each rounded first.

    Both are rounded to multiples of a power of two so large that float64 holds every sum of their products exactly. The
    order of additions then makes no difference. With K terms to a sum an element keeps (53 - log2 K)/2 bits below
    its matrix's largest element (21 for K = 1,797), and more where the other matrix needs fewer.
    """
    first, second = np.asarray(left, np.float64), np.asarray(right, np.float64)
    bits = _MANTISSA_BITS - math.ceil(math.log2(max(1, first.shape[-1])))
    first_scale = _scale(first, bits // 2)
    second_scale = _scale(second, bits // 2)
    rounded: Floats = np.rint(np.ldexp(first, first_scale)) @ np.rint(np.ldexp(second, second_scale))
    exact: Floats = np.ldexp(rounded, -first_scale - second_scale)
    return exact


def _scale(matrix: Floats, bits: int) -> int:
    """Return by which power of two all elements become less than 2^bits."""
    return bits - int(np.frexp(np.abs(matrix).max(initial=0.0))[1])


def exp(exponents: ArrayLike) -> Floats:
    """Return e to the power of each number, to some 2^-52 of it."""
    # Beyond these bounds e^x is infinite or 0 in float64.
    x = np.clip(np.asarray(exponents, np.float64), -1000.0, 1000.0)
    twos = np.rint(x * (1 / math.log(2)))
    rest = (x - twos * _LN2_HIGH) - twos * _LN2_LOW
    series = np.ones_like(rest)
    for term in range(_EXP_TERMS, 0, -1):
        series = series * (rest / term) + 1.0
    return np.ldexp(series, twos.astype(np.int64))


def log(numbers: ArrayLike) -> Floats:
    """Return the natural logarithm of each number, all of which are finite and above 0; of 0 it is that of 2^-1074."""
    mantissa, twos = np.frexp(np.maximum(np.asarray(numbers, np.float64), 5e-324))
    below = mantissa < math.sqrt(0.5)
    mantissa = np.where(below, 2 * mantissa, mantissa)
    twos = twos - below
    # ln m = 2·artanh((m - 1)/(m + 1))
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.zeros_like(ratio)
    for term in range(_LOG_TERMS, 0, -1):
        series = (series + 1.0 / (2 * term + 1)) * square
    return twos * _LN2_HIGH + (2 * ratio + (2 * ratio * series + twos * _LN2_LOW))


def exponential(generator: np.random.Generator, count: int) -> Floats:
    """Return numbers of the exponential distribution with mean 1, by its inverse: NumPy may change how it draws one."""
    return -log(1.0 - generator.random(count))


def gumbel(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return numbers of the standard Gumbel distribution, by its inverse; NumPy's own are libm's to the last bit."""
    return -log(exponential(generator, math.prod(shape)).reshape(shape))
