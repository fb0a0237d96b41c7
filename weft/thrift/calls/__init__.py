"""Carries out BMv2's calls on a session of simple_switch_CLI's commands."""

from __future__ import annotations

import importlib

from weft.thrift.calls.registry import CALLS, CallRefusedError, CallUnsupportedError, Target

__all__ = ["CALLS", "CallRefusedError", "CallUnsupportedError", "Target"]

for _module in ("arrays", "management", "profiles", "replication", "tables", "value_sets"):
    importlib.import_module(f"weft.thrift.calls.{_module}")
