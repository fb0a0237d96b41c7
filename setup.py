"""Build of the native engine; all metadata stands in setup.cfg."""

from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, naive_recompile
from setuptools import setup

ParallelCompile("WEFT_BUILD_JOBS", default=2, needs_recompile=naive_recompile).install()

SOURCES = sorted(str(path) for path in Path("engine/src").rglob("*.cpp"))
HEADERS = sorted(str(path) for path in Path("engine/src").rglob("*.hpp"))

setup(
    ext_modules=[
        Pybind11Extension(
            "engine._core",
            SOURCES,
            depends=HEADERS,
            include_dirs=["engine/src"],
            cxx_std=20,
            extra_compile_args=["-O3", "-g1", "-Wall", "-Wextra", "-fvisibility=hidden"],
        )
    ]
)
