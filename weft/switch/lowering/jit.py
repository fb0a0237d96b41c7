"""Compiles IR to machine code once per program and process, or loads it from the on-disk cache.

A cache entry has the object code and the shape that the runtime needs, so that a cached program
is neither lowered nor compiled. Its key has all dependencies: the document, the lowering code,
the runtime's layout, the CPU and LLVM.
"""

from __future__ import annotations

import functools
import json
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from weft.cache import Store, collector_paused, version_of
from weft.engine import _core
from weft.switch.bmv2json import Program
from weft.switch.lowering import bounds
from weft.switch.lowering.assumptions import Assumptions
from weft.switch.lowering.shape import FUNCTIONS, SPECIALISED_FUNCTIONS, ProgramShape
from weft.switch.lowering.target_cpu import target_cpu

if TYPE_CHECKING:
    from weft.switch.coverage.counts import Counts

OPTIMISATION_LEVEL = 1
"""LLVM's O1: O2 takes half as much time again to compile and made no packet faster."""

_STORE = Store("code")

RECENT_PROGRAMS = 16
"""Most compiled programs kept without a switch that runs them, as a controller may push pipelines forever."""

_compiled: WeakValueDictionary[tuple[str, bool, bool, bool, str], CompiledProgram] = WeakValueDictionary()
_recent: deque[CompiledProgram] = deque(maxlen=RECENT_PROGRAMS)
_lock = threading.RLock()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CompiledProgram:
    """A program in machine code, shared by all switches; `native` is for `_core.Switch.load`.

    `addresses` are those of its functions, as long as `native` lives.
    """

    program: Program
    shape: ProgramShape
    native: Any
    addresses: dict[str, int]


def compile_program(
    program: Program,
    *,
    instrumented: bool = False,
    counts: Counts | None = None,
    assumed: Assumptions | None = None,
) -> CompiledProgram:
    """Lower and compile `program`, or return the cached result for the same document.

    Raises UnsupportedError, with the place, for features that the native switch lacks. `instrumented` code reports to a
    trace (switch/trace) and may replace plain code while it runs; so may code that keeps `counts`. Code with `assumed`
    contents of tables is for `_core.Switch.specialise`.
    """
    with _lock:
        key = program.content_hash, instrumented, counts is not None, bounds.requested(), _text_of(assumed)
        compiled = _compiled.get(key)
        if compiled is None:
            compiled = _compiled[key] = _compile(program, instrumented, counts, assumed)
            _recent.append(compiled)
        return compiled


def is_compiled(content_hash: str, assumed: Assumptions | None = None) -> bool:
    """Return whether `compile_program` has the code of a document, by its hash, or the cache has an entry for it."""
    with _lock:
        if (content_hash, False, False, bounds.requested(), _text_of(assumed)) in _compiled:
            return True
    return _STORE.holds(_key(content_hash, False, None, assumed))


def _text_of(assumed: Assumptions | None) -> str:
    return "" if assumed is None else assumed.to_text()


def _key(content_hash: str, instrumented: bool, symbol: str | None, assumed: Assumptions | None) -> str:
    variant = str(instrumented), str(symbol), str(bounds.requested()), _text_of(assumed)
    return _STORE.key(content_hash, *variant, *_environment())


def _compile(
    program: Program, instrumented: bool, counts: Counts | None, assumed: Assumptions | None
) -> CompiledProgram:
    machine = _machine()
    symbol = None if counts is None else counts.symbol
    key = _key(program.content_hash, instrumented, symbol, assumed)
    entry = _STORE.read(key)
    if entry is not None:
        shape, code = ProgramShape.from_json(json.loads(entry["shape"])), entry["code"]
    else:
        # Not at the top: a cached program needs none of the lowering modules.
        from weft.switch.lowering.program import lower_program

        with collector_paused():
            lowered = lower_program(program, instrumented=instrumented, counts=symbol, assumed=assumed)
        shape, code = lowered.shape, machine.emit_object(_optimise(lowered.ir_text, machine))
        _STORE.write(key, {"shape": json.dumps(shape.to_json()).encode(), "code": code})
    if counts is not None:
        llvm.add_symbol(counts.symbol, counts.address)
    engine = _link(code, machine)
    if assumed is None:
        addresses = {name: engine.get_function_address(name) for name in FUNCTIONS}
        native = _core.SwitchProgram(functions=addresses, code=engine, **shape.runtime)
        return CompiledProgram(program, shape, native, addresses)
    plain = compile_program(program)
    addresses = plain.addresses | {name: engine.get_function_address(name) for name in SPECIALISED_FUNCTIONS}
    contents = assumed.contents(program)
    native = _core.SwitchProgram(functions=addresses, code=(engine, plain), **shape.runtime, assumed=contents)
    return CompiledProgram(program, shape, native, addresses)


@functools.cache
def _environment() -> tuple[str, ...]:
    """Return the code's dependencies besides the program."""
    folder = Path(__file__).parent
    return (
        version_of([folder, folder.parent / "bmv2json", folder.parent / "trace"]),
        json.dumps(_core.switch_abi(), sort_keys=True),
        *target_cpu(),
        f"{llvmlite.__version__} {llvm.llvm_version_info} O{OPTIMISATION_LEVEL}",
    )


def _link(code: bytes, machine: Any) -> Any:
    """An execution engine with the object code finalised."""
    holder = llvm.parse_assembly("")
    holder.triple = machine.triple
    engine = llvm.create_mcjit_compiler(holder, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _machine() -> Any:
    """Return a new target machine; each execution engine destroys its own."""
    _initialise()
    cpu, features = target_cpu()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu,
        features=features,
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
    options.loop_vectorization = True  # of runs of equal statements (runs.py)
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module
