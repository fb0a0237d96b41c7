"""The files that a compilation writes, taken from the cache on disk if the same program was compiled before.

An entry's key is the compiler's own source, the program's name and text, and the options. It is used only if all
included files still read the same and files that were sought but not found are still absent. Programs that are
refused are compiled anew each time.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cache import Store, read_text, version_of
from weft.compiler.budgets import SOURCE_BYTES
from weft.compiler.report import Report

if TYPE_CHECKING:
    from weft.compiler.driver import CompileResult

_STORE = Store("program")


@dataclass(frozen=True, slots=True)
class Artifacts:
    """BMv2 JSON, P4Info in protobuf's text and binary format, listed entries in the binary one, and the warnings."""

    json_text: str
    p4info_text: str
    p4info_bytes: bytes
    entries_bytes: bytes
    warnings: tuple[Report, ...]

    @classmethod
    def of(cls, result: CompileResult) -> Artifacts:
        """Take the artifacts from the result of a compilation."""
        warnings = tuple(warning.report() for warning in result.warnings)
        return cls(result.json_text(), result.p4info_text(), result.p4info_bytes(), result.entries_bytes(), warnings)

    def p4info_json(self) -> str:
        """P4Info in protobuf's JSON format."""
        from weft.compiler.p4info.formats import Content, binary_to_json

        return binary_to_json(Content.P4INFO, self.p4info_bytes)

    def entries_text(self) -> str:
        """The listed entries, a WriteRequest, in protobuf's text format."""
        from weft.compiler.p4info.formats import Content, binary_to_text

        return binary_to_text(Content.ENTRIES, self.entries_bytes)

    def entries_json(self) -> str:
        """The listed entries, a WriteRequest, in protobuf's JSON format."""
        from weft.compiler.p4info.formats import Content, binary_to_json

        return binary_to_json(Content.ENTRIES, self.entries_bytes)


def compile_artifacts(
    path: str | Path,
    *,
    include_paths: Sequence[str | Path] = (),
    defines: Mapping[str, str | None] | None = None,
    use_cache: bool = True,
) -> Artifacts:
    """Compile a v1model program as `compile_file` does, or take the result from the cache. Raises CompileError."""
    key = _key(Path(path), include_paths, defines or {}) if use_cache else None
    entry = None if key is None else _STORE.read(key)
    if entry is not None and _is_current(json.loads(entry["dependencies"])):
        return _unpack(entry)
    # Not at the top: what comes from the cache needs none of the compiler's modules.
    from weft.compiler.driver import compile_file

    result = compile_file(path, include_paths=include_paths, defines=defines)
    artifacts = Artifacts.of(result)
    if key is not None:
        _STORE.write(key, {**_pack(artifacts), "dependencies": json.dumps(_dependencies(result)).encode()})
    return artifacts


def _key(path: Path, include_paths: Sequence[str | Path], defines: Mapping[str, str | None]) -> str | None:
    text = _text_hash(path)
    if text is None:
        return None
    options = json.dumps([[str(folder) for folder in include_paths], list(defines.items())])
    return _STORE.key(_compiler_version(), sys.version, str(path), text, options)


@cache
def _compiler_version() -> str:
    """The version of the compiler that this process runs; reading its source takes longer than reading an entry."""
    return version_of([Path(__file__).parent], (".py", ".p4"))


def _text_hash(path: str | Path) -> str | None:
    """SHA-256 of the text as the preprocessor reads it; None if it cannot be read."""
    try:
        return hashlib.sha256(read_text(path, SOURCE_BYTES).encode()).hexdigest()
    except (OSError, ValueError):
        return None


def _dependencies(result: CompileResult) -> dict[str, Any]:
    files = {file.name: hashlib.sha256(file.text.encode()).hexdigest() for file in result.checked.files}
    return {"files": files, "absent": [str(path) for path in result.checked.absent]}


def _is_current(dependencies: dict[str, Any]) -> bool:
    return all(_text_hash(name) == text for name, text in dependencies["files"].items()) and not any(
        Path(path).is_file() for path in dependencies["absent"]
    )


def _pack(artifacts: Artifacts) -> dict[str, bytes]:
    return {
        "json": artifacts.json_text.encode(),
        "p4info_text": artifacts.p4info_text.encode(),
        "p4info_bytes": artifacts.p4info_bytes,
        "entries_bytes": artifacts.entries_bytes,
        "warnings": json.dumps([warning.to_json() for warning in artifacts.warnings]).encode(),
    }


def _unpack(entry: dict[str, bytes]) -> Artifacts:
    return Artifacts(
        entry["json"].decode(),
        entry["p4info_text"].decode(),
        entry["p4info_bytes"],
        entry["entries_bytes"],
        tuple(Report.from_json(each) for each in json.loads(entry["warnings"])),
    )
