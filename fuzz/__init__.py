"""Fuzzing of everything that reads untrusted input: P4 source, BMv2 JSON, P4Runtime requests, packets.

`python -m fuzz TARGET --minutes 60 --seed 1` runs one target; `python -m fuzz TARGET CASE…` replays cases.
`python -m fuzz.plane_flaps` has no cases: it draws when links fail under reductions in the network.
"""
