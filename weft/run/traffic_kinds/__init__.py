"""Kinds of traffic, one file each: the item's section, its checks and how it runs (docs/howto/traffic.md).

Modules in this folder are found automatically (`weft.scenario.traffic.TRAFFIC_KINDS`).
"""
