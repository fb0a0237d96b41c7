"""IR to machine code: once per program and process, and from an on-disk cache of object code where there is
one.

The cache lies in $WEFT_CACHE_DIR, or ~/.cache/weft, keyed by the IR, the CPU and LLVM's version;
WEFT_CACHE_DIR set to nothing turns it off. Damaged or unwritable cache files are ignored.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from engine import _core
from switch.bmv2json import Program
from switch.lowering.program import FUNCTIONS, LoweredProgram, lower_program

OPTIMISATION_LEVEL = 1
"""LLVM's O1: what O2 adds costs half as much time again to compile and made no packet faster."""

CACHED_PROGRAMS = 32
"""How many programs' code the on-disk cache keeps."""

_compiled: dict[str, CompiledProgram] = {}
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program in machine code; `native` is what `_core.Switch.load` takes. Shared by all switches."""

    lowered: LoweredProgram
    native: Any


def compile_program(program: Program) -> CompiledProgram:
    """Lower and compile `program`, or return what was made of the same document before.

    UnsupportedError says what the native switch does not implement, and where.
    """
    with _lock:
        compiled = _compiled.get(program.content_hash)
        if compiled is None:
            compiled = _compiled[program.content_hash] = _compile(program)
        return compiled


def _compile(program: Program) -> CompiledProgram:
    lowered = lower_program(program)
    engine = _link(lowered.ir_text)
    addresses = {name: engine.get_function_address(name) for name in FUNCTIONS}
    native = _core.SwitchProgram(functions=addresses, code=engine, **lowered.shape)
    return CompiledProgram(lowered, native)


def _link(ir_text: str) -> Any:
    """An execution engine with the module's code finalised."""
    machine = _machine()
    cache_file = _cache_file(ir_text)
    code = _read(cache_file)
    if code is None:
        code = machine.emit_object(_optimise(ir_text, machine))
        _write(cache_file, code)
    holder = llvm.parse_assembly("")
    holder.triple = machine.triple
    engine = llvm.create_mcjit_compiler(holder, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _machine() -> Any:
    """A target machine of its own for each execution engine, which destroys it with itself."""
    _initialise()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=OPTIMISATION_LEVEL,
        reloc="pic",
        codemodel="jitdefault",
        jit=True,
    )


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in _core.switch_runtime_symbols().items():
        llvm.add_symbol(name, address)


def _optimise(ir_text: str, machine: Any) -> Any:
    module = llvm.parse_assembly(ir_text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION_LEVEL)
    options.loop_unrolling = False
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


# ---- object cache


def _cache_file(ir_text: str) -> Path | None:
    setting = os.environ.get("WEFT_CACHE_DIR")
    if setting == "":
        return None
    folder = Path(setting) if setting else Path.home() / ".cache" / "weft"
    parts = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), str(llvm.llvm_version_info))
    key = hashlib.sha256("\0".join((*parts, str(OPTIMISATION_LEVEL), ir_text)).encode()).hexdigest()
    return folder / f"{key}.o"


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, code = data[:32], data[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path | None, code: bytes) -> None:
    """Write whole or not at all: another process may be reading."""
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(file.name, path)
        _prune(path.parent)


def _prune(folder: Path) -> None:
    """Keep the newest files only."""
    files = sorted(folder.glob("*.o"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[CACHED_PROGRAMS:]:
        file.unlink(missing_ok=True)
