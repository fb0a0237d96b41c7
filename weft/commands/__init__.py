"""The commands that are weft's own; one file each."""
