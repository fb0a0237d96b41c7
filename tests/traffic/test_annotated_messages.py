"""Annotations of a message's fields are checks if they can be called; others are for readers of the code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from weft.quantities.example import Example
from weft.traffic.messages import Between, MessageError, as_message, read_message


@dataclass(frozen=True)
class _Noted:
    depth: Annotated[int, Example("3"), Between(1, 4)] = 1


def test_an_example_checks_nothing() -> None:
    assert read_message(_Noted, as_message(_Noted(4))) == _Noted(4)
    with pytest.raises(MessageError, match="depth"):
        read_message(_Noted, {"depth": 5})
