"""Kinds of traffic, a file each: the item's section, its checks and how it runs (docs/howto/traffic.md).

A module in this folder is found by itself (`weft.scenario.traffic.TRAFFIC_KINDS`).
"""
