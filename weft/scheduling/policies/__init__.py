"""The policies that place jobs, one file each: the module's `KIND` is all that the rest of Weft uses.

A new policy is a file here, and its name in `PolicyName` (`weft/scenario/schedule.py`).
"""

from __future__ import annotations

from weft.errors import BadInputError
from weft.registry import Registry, constant_of
from weft.scheduling.policy import Policy

POLICIES: Registry[Policy] = Registry(__name__, "policy", constant_of(Policy), BadInputError)
