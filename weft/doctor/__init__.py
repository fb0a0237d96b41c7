"""What this machine can do: one check for each capability, none of which changes anything."""

from weft.doctor.capability import Capability, Finding
from weft.doctor.examination import Examined, examine
from weft.errors import BadInputError
from weft.registry import Registry

CAPABILITIES = Registry[Capability](
    f"{__name__}.capabilities",
    "capability",
    lambda module: ((each.name, each) for each in getattr(module, "CAPABILITIES", ())),
    BadInputError,
)
"""All capabilities by name; a module of `weft.doctor.capabilities` lists its own as CAPABILITIES."""

__all__ = ["CAPABILITIES", "Capability", "Examined", "Finding", "examine"]
