"""Errors of networks and controllers in p4-utils' form."""

from __future__ import annotations

from weft.errors import BadInputError


class UnsupportedCallError(BadInputError):
    """A call of p4-utils that Weft does not have; names the call and what to do instead."""
