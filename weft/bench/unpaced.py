"""Senders that no congestion control holds back, as a traffic generator's."""

from __future__ import annotations

from weft.bench.variants import Changes

_WINDOW = "1GB"
UNPACED: Changes = {
    "transport.congestion_control": "fixed-window",
    "transport.preset": None,
    "transport.parameters": {"window": _WINDOW},
}
"""Changes of a scenario: hosts send at line rate whatever the fabric says. The transport stays."""
