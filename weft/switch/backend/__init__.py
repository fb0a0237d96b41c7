"""The interface of switches to the P4Runtime server: protocol, entities, errors and events."""

from weft.switch.backend.entities import *
from weft.switch.backend.errors import *
from weft.switch.backend.program_entries import *
from weft.switch.backend.protocol import *
