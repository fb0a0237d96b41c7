"""Keys of a choice of path that is not in use."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.traffic.class_reference import is_class_reference

_PATHS = {"spray_paths": "spray", "flowlet_gap": "flowlet"}


class PathKeyUnused(Rule):
    """Keys of a choice of path that is not in use."""

    name = "path-key-unused"
    when = (
        "`transport.spray_paths` or `transport.flowlet_gap` is given, and `transport.path` is not the choice that "
        "has it"
    )
    reason = "the key changes nothing"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        transport = plan.options.transport
        for key, path in _PATHS.items():
            if key not in transport.model_fields_set or transport.path == path or is_class_reference(transport.path):
                continue
            settings = {"transport.path": path}
            if path == "spray" and transport.retransmission != "selective-repeat":
                settings["transport.retransmission"] = "selective-repeat"
            yield self.finding(
                f"transport.{key}",
                f"path: {transport.path} does not have it, so it changes nothing",
                settings,
                "leave it out",
            )
