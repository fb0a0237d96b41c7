"""Users' classes: found by `path/to/file.py:Class`, checked and instantiated; their errors say where they occurred."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any, TypeVar

from weft.engine import ExtensionError

T = TypeVar("T")


@dataclass(frozen=True)
class ClassSpec:
    """A user's class, `path/to/file.py:Class`, and the keyword arguments that it is made with."""

    reference: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def load_class(reference: str, base: type[T]) -> type[T]:
    """Return the class that `path/to/file.py:Class` names.

    A file is run once per process, as long as it does not change.

    Raises:
        ExtensionError: there is no such file or class, the file cannot be run, or the class is not of `base`, or lacks
            a method of it.
    """
    file, name, module = _module_of(reference, "class")
    found = getattr(module, name, None)
    if found is None:
        own = [key for key, value in vars(module).items() if _is_usable(value, base)]
        valid = f"valid: {', '.join(sorted(own))}" if own else f"it has no {base.__name__}"
        raise ExtensionError(f"{file} has no class '{name}' ({valid})")
    if not isinstance(found, type) or not issubclass(found, base):
        raise ExtensionError(f"{reference} is no {base.__name__}: write class {name}(weft.{base.__name__})")
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise ExtensionError(f"{reference} lacks {', '.join(f'{method}()' for method in missing)}")
    return found


def _module_of(reference: str, kind: str) -> tuple[str, str, ModuleType]:
    """Return the file and the name of `path/to/file.py:NAME`, and the file's module. Raises ExtensionError."""
    file, colon, name = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise ExtensionError(f"'{reference}' does not name a {kind} (valid: path/to/file.py:{kind.title()})")
    return file, name, _load_module(Path(file).resolve(), file)


def load_function(reference: str) -> Callable[..., Any] | None:
    """Return the function that `path/to/file.py:function` names; None if it names a class, or nothing.

    Raises ExtensionError: there is no such file, or it cannot be run.
    """
    _, name, module = _module_of(reference, "class")
    found = getattr(module, name, None)
    return found if inspect.isfunction(found) else None


def require_parameters(
    reference: str, taker: Callable[..., Any], parameters: Mapping[str, Any], *arguments: Any
) -> None:
    """Check that a class or function takes parameters after `arguments`. Raises ExtensionError with those it takes."""
    signature = inspect.signature(taker)
    try:
        signature.bind(*arguments, **parameters)
    except TypeError as error:
        taken = [str(each) for each in signature.parameters.values()][len(arguments) :]
        raise ExtensionError(
            f"{reference}: parameters {dict(parameters)}: {error} (valid: {', '.join(taken) or 'none'})"
        ) from None


def make(spec: ClassSpec, base: type[T], *arguments: Any) -> T:
    """Make an object of a user's class, with these arguments before its parameters.

    Raises:
        ExtensionError: as `load_class`, or the class does not accept the parameters, or its constructor failed.
    """
    made_class = load_class(spec.reference, base)
    require_parameters(spec.reference, made_class, spec.parameters, *arguments)
    with user_code(spec.reference), exits_refused(spec.reference):
        return made_class(*arguments, **spec.parameters)


@contextlib.contextmanager
def user_code(what: str) -> Iterator[None]:
    """Raise exceptions of a user's code as ExtensionError, with the traceback from where that code begins."""
    try:
        yield
    except ExtensionError:
        raise
    except Exception as error:
        raise ExtensionError(user_report(error, what)) from error


def user_report(error: BaseException, what: str) -> str:
    """Return where a user's code raised, the line of its source, what it was, and its traceback.

    First the innermost frame of the user's file: `mine.py:14: ZeroDivisionError: …`. The traceback has no frames of
    Weft's, neither above the user's nor of exceptions that Weft was handling meanwhile. `what` was called.
    """
    own = _from_user_code(error.__traceback__)
    frames = [frame for frame in traceback.walk_tb(own) if _is_user_frame(frame[0])]
    summary = f"{type(error).__name__}: {error}"
    if frames:
        frame, line = frames[-1]
        file = frame.f_code.co_filename
        source = linecache.getline(file, line).strip()
        head = f"{file}:{line}: {summary}, raised by {what}\n    {source}"
    elif isinstance(error, SyntaxError):
        head = f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}, raised by {what}"
    else:
        head = f"{what} raised {summary}"
    return f"{head}\n{_user_traceback(error, own)}"


def _user_traceback(error: BaseException, own: TracebackType | None) -> str:
    shown = traceback.TracebackException(type(error), error, own)
    context = shown
    seen = error
    # An exception that was being handled when the user's code raised counts only if it also came from that code.
    while context.__context__ is not None and seen.__context__ is not None:
        if not is_user_error(seen.__context__):
            context.__context__ = None
            break
        context, seen = context.__context__, seen.__context__
    return "".join(shown.format()).rstrip()


@contextlib.contextmanager
def exits_refused(what: str) -> Iterator[None]:
    """Raise ExtensionError for a user's code that exits, which would end Weft without a word."""
    try:
        yield
    except SystemExit as error:
        raise ExtensionError(f"{what} called sys.exit({error.code!r}): return in place of it") from error


def _from_user_code(here: TracebackType | None) -> TracebackType | None:
    while here is not None and not _is_user_frame(here.tb_frame):
        here = here.tb_next
    return here


def _is_user_frame(frame: FrameType) -> bool:
    return bool(frame.f_globals.get("__weft_extension__"))


def is_user_error(error: BaseException) -> bool:
    """Whether an exception comes from a user's file."""
    return _from_user_code(error.__traceback__) is not None


def without_frames_of_weft(error: BaseException) -> BaseException:
    """Return an exception with the frames of users' files alone in its traceback, if it has any."""
    frames = []
    here = error.__traceback__
    while here is not None:
        if _is_user_frame(here.tb_frame):
            frames.append(here)
        here = here.tb_next
    kept: TracebackType | None = None
    for each in reversed(frames):
        kept = TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return error.with_traceback(kept) if kept is not None else error


def overridden(user: object, base: type, name: str) -> Callable[..., Any] | None:
    """Return a method of a user's object; None if its class has only the one of `base`, which does nothing."""
    return None if getattr(type(user), name) is getattr(base, name) else getattr(user, name)


def _is_usable(value: Any, base: type) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, base)
        and value is not base
        and not getattr(value, "__abstractmethods__", ())
    )


def _load_module(path: Path, given: str) -> ModuleType:
    if path.exists() and not path.is_file():
        # A pipe would be waited for, and some devices never end.
        raise ExtensionError(f"{given}: is no regular file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ExtensionError(f"{given}: cannot be read: {error.strerror}") from None
    digest = hashlib.sha256(str(path).encode() + b"\0" + content).hexdigest()[:16]
    name = f"weft_extension_{path.stem}_{digest}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__weft_extension__"] = True
    sys.modules[name] = module
    try:
        with user_code(given), exits_refused(given):
            # Not by the spec's loader: it may run bytecode of before a change within the same second.
            exec(compile(content, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module
