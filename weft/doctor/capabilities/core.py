"""The native engine, machine code for switches' programs, and their cache."""

from __future__ import annotations

import subprocess
import sys

from weft.cache import cache_directory, unusable_because
from weft.doctor.capability import Capability, Finding
from weft.system.child_processes import python_environment

_CHILD_S = 45.0
"""Loading the engine takes a second on an idle machine."""

_ENGINE = "import weft.engine as engine; print(engine._core.__file__)"
_MACHINE_CODE = """
import ctypes, llvmlite
from llvmlite import binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
module = llvm.parse_assembly("define i32 @answer() { ret i32 42 }")
machine = llvm.Target.from_default_triple().create_target_machine()
code = llvm.create_mcjit_compiler(module, machine)
code.finalize_object()
assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.get_function_address("answer"))() == 42
print(f"LLVM {'.'.join(map(str, llvm.llvm_version_info))} for {llvm.get_host_cpu_name()}")
"""


def _printed(code: str) -> Finding:
    """Return the line that Python code prints in a child process, which may crash without ending this one."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env=python_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_CHILD_S,
        )
    except subprocess.TimeoutExpired:
        return Finding(False, f"no answer within {_CHILD_S:g} s")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"the process ended with status {done.returncode}"])[-1]
        return Finding(False, last)
    return Finding(True, done.stdout.strip())


def _cache() -> Finding:
    problem = unusable_because()
    return Finding(problem is None, problem or str(cache_directory()))


CAPABILITIES = [
    Capability(
        name="engine",
        purpose="every run: clock, links, queues, hosts",
        look=lambda: _printed(_ENGINE),
        cost="no run works",
        install="in a checkout, with a C++ compiler: .venv/bin/python setup.py build_ext --inplace, or pip install .",
        is_essential=True,
    ),
    Capability(
        name="machine code",
        purpose="every run: P4 programs become machine code",
        look=lambda: _printed(_MACHINE_CODE),
        cost="no run works",
        install="pip install llvmlite; the system must let a process execute memory that it has written",
        is_essential=True,
    ),
    Capability(
        name="cache folder",
        purpose="compiled programs of earlier runs",
        look=_cache,
        cost="every run compiles its P4 programs again",
        install="set WEFT_CACHE_DIR to a folder of your own that nobody else may write",
    ),
]
