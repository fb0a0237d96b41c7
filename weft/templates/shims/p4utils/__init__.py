"""p4-utils' modules, which are Weft's. Written by `weft shims`."""

import weft.p4utils

__path__ = list(weft.p4utils.__path__)
