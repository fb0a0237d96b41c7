"""Weft: scenarios, back ends, runs and reports; the `weft` command and its Python API."""

from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, WeftError
from weft.fabric import CollectiveRun, Fabric

__all__ = [
    "BadInputError",
    "CheckFailedError",
    "CollectiveRun",
    "EnvironmentLacksError",
    "Fabric",
    "WeftError",
]
