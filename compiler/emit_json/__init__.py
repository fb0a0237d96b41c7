"""BMv2 JSON from the lowered program."""

from compiler.emit_json.document import emit_json
from compiler.emit_json.text import document_text

__all__ = ["document_text", "emit_json"]
