"""All targets by name."""

from __future__ import annotations

from collections.abc import Callable

from fuzz.frontend import FrontendTarget
from fuzz.json_documents import JsonTarget
from fuzz.p4runtime import P4RuntimeTarget
from fuzz.packets import PacketsTarget
from fuzz.switch_programs import ProgramsTarget
from fuzz.target import Target
from fuzz.traces import TracesTarget

TARGETS: dict[str, Callable[[], Target]] = {
    "frontend": FrontendTarget,
    "json": JsonTarget,
    "p4runtime": P4RuntimeTarget,
    "packets": PacketsTarget,
    "programs": ProgramsTarget,
    "traces": TracesTarget,
}
