"""The package of PI's p4config.proto. Written by `weft shims`."""
