"""BMv2 JSON from the lowered program."""

from compiler.emit_json.document import emit_json

__all__ = ["emit_json"]
