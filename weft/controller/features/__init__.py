"""Features that the controller programs in a fabric: one per file, found by listing this folder."""

from __future__ import annotations

from weft.controller.errors import SettingError
from weft.controller.features.kind import Feature, Settings
from weft.registry import Registry, constant_of

FEATURES: Registry[Feature] = Registry(__name__, "feature", constant_of(Feature), SettingError)

__all__ = ["FEATURES", "Feature", "Settings"]
