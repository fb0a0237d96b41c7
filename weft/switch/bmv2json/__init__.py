"""BMv2 JSON: `load_program` turns a document into a frozen, fully checked `Program`."""

from weft.switch.bmv2json.expressions import *
from weft.switch.bmv2json.loader import *
from weft.switch.bmv2json.model import *
from weft.switch.bmv2json.model_headers import *
from weft.switch.bmv2json.model_parsers import *
from weft.switch.bmv2json.model_pipelines import *
from weft.switch.bmv2json.node import *
from weft.switch.bmv2json.primitives import *
from weft.switch.bmv2json.static_types import *
