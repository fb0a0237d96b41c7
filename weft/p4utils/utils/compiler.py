"""p4-utils' compilers by name: Weft's compiler takes the place of `P4C`; `BF_P4C`, for Tofino, does not run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from weft.p4utils.errors import UnsupportedCallError

_OPTIONS = ("p4rt", "outdir", "opts", "p4c_bin")
_OPTION_WORDS = ("--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "p4_16")


class P4C:
    """Stands for p4c in `setCompiler`. The lab compiles each program, and writes JSON and P4Info next to it.

    `p4rt`, `outdir` and `p4c_bin` have no effect; `opts` may have p4-utils' default words only.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UnsupportedCallError("P4C compiles nothing by itself", valid="weft compile, p4c of `weft shims`")

    @classmethod
    def require_supported(cls, options: Mapping[str, Any]) -> None:
        """Raise UnsupportedCallError for an option that changes what is compiled."""
        for name, value in options.items():
            if name not in _OPTIONS:
                raise UnsupportedCallError(f"setCompiler: {name} is not an option of p4c's", valid=_OPTIONS)
            if name == "opts":
                others = [word for word in shlex.split(str(value)) if word not in _OPTION_WORDS]
                if others:
                    raise UnsupportedCallError(f"setCompiler: opts: {others[0]!r}", valid=_OPTION_WORDS)


class BF_P4C:
    """Stands for Tofino's compiler, which `setCompiler` refuses."""
