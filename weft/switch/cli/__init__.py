"""`weft switch`: one embedded switch in the foreground, with simple_switch_grpc's options."""

from weft.switch.cli.command import switch

__all__ = ["switch"]
