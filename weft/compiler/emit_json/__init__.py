"""BMv2 JSON from the lowered program."""

from weft.compiler.emit_json.document import document_text, emit_json

__all__ = ["document_text", "emit_json"]
