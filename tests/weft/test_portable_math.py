"""Mathematics that no processor, BLAS or number of threads changes, and the inputs of runs that are made with it."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from weft.paths import ROOT
from weft.quantities import portable_math

DIGEST = """
import hashlib
import numpy as np
from weft.jobs.digits_mlp import DigitsMlp
from weft.jobs.inference.requests import TokenCounts, poisson_requests
from weft.jobs.compute_variation import ComputeVariation
from weft.traffic.commands.parameters import ParameterRequests
from weft.traffic.expert_choice import chosen_experts, skewed_popularity
from weft.traffic.host_parameters import drawn_requests
from weft.traffic.workload import _arrivals_ps

model = DigitsMlp(4, 7, 64, 100)
weights = model.initial
for step in range(5):
    weights = weights - np.float32(0.5) * model.mean_gradient(weights, step)
popularity = skewed_popularity(16, 1.1).reshape(4, 4)
counts = TokenCounts(median=500, sigma=1.0)
requests = poisson_requests(1e4, 5000, counts, counts, 3)
made = [
    weights,
    model.gradient(weights, 1, 9),
    np.array([model.loss(weights)]),
    requests.arrival_ps,
    requests.prompt_tokens,
    ComputeVariation(jitter=0.3).with_jitter(0, np.arange(1, 5000) * 10**6),
    popularity,
    chosen_experts(popularity, 2000, 2, 2, np.random.default_rng(1)),
    _arrivals_ps(np.random.default_rng(5), 1e6, 10**10),
]
print(hashlib.sha256(b"".join(each.tobytes() for each in made)).hexdigest())
"""
PLAIN_EXP = """
import hashlib
import numpy as np
print(hashlib.sha256(np.exp(-np.arange(5000) / 700).tobytes()).hexdigest())
"""


def dispatched() -> str:
    """The processors' features by which this NumPy chooses its loops."""
    try:
        from numpy._core._multiarray_umath import __cpu_dispatch__
    except ImportError:  # before NumPy 2
        from numpy.core._multiarray_umath import __cpu_dispatch__
    return " ".join(__cpu_dispatch__)


def processor_has(feature: str) -> bool:
    return feature in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()


def digest_with(program: str = DIGEST, **variables: str) -> str:
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def test_inputs_of_runs_are_the_same_under_every_kernel_and_number_of_threads() -> None:
    kernels = ["Nehalem"]
    if processor_has("avx2"):
        kernels += ["Haswell", "Zen"]
    if processor_has("avx512f"):
        kernels.append("SkylakeX")
    digests = {
        kernel: digest_with(OPENBLAS_CORETYPE=kernel, OPENBLAS_NUM_THREADS=str(1 + number % 2))
        for number, kernel in enumerate(kernels)
    }
    digests["libm without FMA"] = digest_with(GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable")
    digests["NumPy's plain loops"] = digest_with(NPY_DISABLE_CPU_FEATURES=dispatched())
    if processor_has("avx512f"):
        plain = digest_with(PLAIN_EXP, NPY_DISABLE_CPU_FEATURES=dispatched())
        assert digest_with(PLAIN_EXP) != plain, "NumPy's own loops do not differ, so nothing was compared"
    assert len(set(digests.values())) == 1, digests


@given(numbers=arrays(np.float64, st.integers(1, 20), elements=st.floats(-745, 709)))
def test_exp_is_exact_to_two_units_in_the_last_place(numbers: np.ndarray) -> None:
    found = portable_math.exp(numbers)
    for number, result in zip(numbers.tolist(), found.tolist(), strict=True):
        exact = math.exp(number)
        assert abs(result - exact) <= 2 * math.ulp(exact)


def test_exp_beyond_float64_is_infinite_or_zero() -> None:
    with np.errstate(over="ignore"):
        found = portable_math.exp([-1e300, -800.0, 0.0, 800.0, 1e300])
    assert found.tolist() == [0.0, 0.0, 1.0, math.inf, math.inf]


@given(numbers=arrays(np.float64, st.integers(1, 20), elements=st.floats(5e-324, 1.7e308)))
def test_log_is_exact_to_three_units_in_the_last_place(numbers: np.ndarray) -> None:
    found = portable_math.log(numbers)
    for number, result in zip(numbers.tolist(), found.tolist(), strict=True):
        exact = math.log(number)
        assert abs(result - exact) <= 3 * math.ulp(exact)


@given(
    left=arrays(np.float64, (3, 50), elements=st.floats(-1e6, 1e6)),
    right=arrays(np.float64, (50, 2), elements=st.floats(-1e-3, 1e-3)),
    order=st.permutations(range(50)),
)
def test_a_product_is_near_the_exact_one_and_knows_no_order(
    left: np.ndarray, right: np.ndarray, order: list[int]
) -> None:
    found = portable_math.product(left, right)
    assert (found == portable_math.product(left[:, order], right[order])).all()
    # 23 bits of the largest element of each matrix, in 50 terms.
    bound = 50 * 2.0**-22 * np.abs(left).max() * np.abs(right).max()
    for row in range(3):
        for column in range(2):
            exact = math.fsum(a * b for a, b in zip(left[row].tolist(), right[:, column].tolist(), strict=True))
            assert abs(found[row, column] - exact) <= bound


def test_small_integers_are_multiplied_exactly() -> None:
    generator = np.random.default_rng(1)
    left, right = generator.integers(-9999, 9999, (7, 1000)), generator.integers(-9999, 9999, (1000, 5))
    assert (portable_math.product(left, right) == left @ right).all()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty_and_zero_matrices_have_products(shape: tuple[int, int]) -> None:
    assert (portable_math.product(np.zeros(shape), np.zeros((shape[1], 4))) == np.zeros((shape[0], 4))).all()


def test_exponential_numbers_have_mean_and_variance_one() -> None:
    drawn = portable_math.exponential(np.random.default_rng(1), 200_000)
    assert drawn.min() >= 0
    assert abs(drawn.mean() - 1) < 0.01
    assert abs(drawn.var() - 1) < 0.03
