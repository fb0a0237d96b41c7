"""P4Info as files hold it."""

from __future__ import annotations

from google.protobuf import text_format

from compiler.p4info.messages import p4info_pb2


def to_text(p4info: p4info_pb2.P4Info) -> str:
    """Protobuf's text format."""
    header = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"
    return header + str(text_format.MessageToString(p4info))


def to_json(data: bytes) -> str:
    """Protobuf's JSON format of P4Info that is given in the binary one."""
    # Not at the top: hardly ever wanted, and slow to import.
    from google.protobuf import json_format

    return str(json_format.MessageToJson(p4info_pb2.P4Info.FromString(data))) + "\n"
