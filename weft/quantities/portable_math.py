"""Mathematics with the same result to the last bit on every processor.

NumPy chooses the kernels of `@` (BLAS) and of `np.exp`, `np.log` and `np.log1p` (SVML) by processor, and their results
differ in the last digits; products also depend on the number of threads. IEEE 754 defines addition, multiplication,
division and scaling by powers of two exactly, so functions built from these alone do not differ.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from weft.quantities.arrays import Floats

_MANTISSA_BITS = 53
# ln 2 in two parts: the higher one ends in zeros, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_EXP_TERMS = 14  # 0.347^15/15! is below 2^-62
_LOG_TERMS = 11  # 0.172^24/25 is below 2^-62


def product(left: ArrayLike, right: ArrayLike) -> Floats:
    """Return the product of two matrices after rounding both.

    Both are rounded to multiples of a power of two large enough for float64 to hold every sum of products exactly, so
    that the order of additions does not matter. With K terms in a sum, an element keeps (53 - log2 K)/2 bits below its
    matrix's largest element (21 for K = 1,797), and more if the other matrix needs fewer.
    """
    first, second = np.asarray(left, np.float64), np.asarray(right, np.float64)
    bits = _MANTISSA_BITS - math.ceil(math.log2(max(1, first.shape[-1])))
    first_scale = _scale(first, bits // 2)
    second_scale = _scale(second, bits // 2)
    rounded: Floats = np.rint(np.ldexp(first, first_scale)) @ np.rint(np.ldexp(second, second_scale))
    exact: Floats = np.ldexp(rounded, -first_scale - second_scale)
    return exact


def _scale(matrix: Floats, bits: int) -> int:
    """Return the exponent of the power of two that scales all elements below 2^bits."""
    return bits - int(np.frexp(np.abs(matrix).max(initial=0.0))[1])


def exp(exponents: ArrayLike) -> Floats:
    """Return e to the power of each number, with a relative error of about 2^-52."""
    # Beyond these bounds e^x is infinite or 0 in float64.
    x = np.clip(np.asarray(exponents, np.float64), -1000.0, 1000.0)
    twos = np.rint(x * (1 / math.log(2)))
    rest = (x - twos * _LN2_HIGH) - twos * _LN2_LOW
    series = np.ones_like(rest)
    for term in range(_EXP_TERMS, 0, -1):
        series = series * (rest / term) + 1.0
    return np.ldexp(series, twos.astype(np.int64))


def log(numbers: ArrayLike) -> Floats:
    """Return the natural logarithm of finite numbers above 0; 0 is treated as 2^-1074."""
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
    """Draw from the exponential distribution with mean 1 by inversion, because NumPy may change its method."""
    return -log(1.0 - generator.random(count))


def gumbel(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw from the standard Gumbel distribution by inversion, because NumPy's method depends on libm's last bit."""
    return -log(exponential(generator, math.prod(shape)).reshape(shape))
