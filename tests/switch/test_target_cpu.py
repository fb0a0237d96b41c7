"""WEFT_CPU: programs are compiled for a level of x86-64 in place of this processor."""

import llvmlite.binding as llvm
import pytest

from weft.switch.lowering.errors import UnsupportedError
from weft.switch.lowering.target_cpu import LEVELS, VARIABLE, target_cpu


def test_this_processor_is_the_default(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert target_cpu() == (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def test_a_level_is_given_to_llvm_as_it_is(monkeypatch):
    monkeypatch.setenv(VARIABLE, "x86-64")
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: llvm.FeatureMap({"sse2": True}))
    assert target_cpu() == ("x86-64", "")


def test_a_level_that_the_processor_lacks_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "x86-64-v4")
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: llvm.FeatureMap({"sse2": True, "avx512f": False}))
    with pytest.raises(UnsupportedError, match="WEFT_CPU=x86-64-v4 here: this processor lacks avx512f"):
        target_cpu()


def test_another_name_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "fast")
    with pytest.raises(UnsupportedError, match=f"WEFT_CPU=fast: give one of {', '.join(LEVELS)}, or none"):
        target_cpu()
