"""BMv2 JSON from the lowered program."""

from weft.compiler.emit_json.document import emit_json
from weft.compiler.emit_json.text import document_text

__all__ = ["document_text", "emit_json"]
