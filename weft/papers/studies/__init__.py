"""The papers that Weft reproduces, one per file, each a `KIND` of class Study (docs/howto/paper.md)."""

from weft.errors import BadInputError
from weft.papers.study import Study
from weft.registry import Registry, constant_of

STUDIES: Registry[Study] = Registry(__name__, "paper", constant_of(Study), BadInputError)
"""Studies by the name of their command."""
