"""Switches of one process: their configuration, ports and links, and their services in addition to P4Runtime.

`python -m weft.switch.daemon` runs all embedded switches of a lab; `weft switch` and virtual runs use the same parts.
"""
