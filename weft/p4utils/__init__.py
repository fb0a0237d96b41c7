"""p4-utils' Python modules over Weft's labs: its users' `network.py` and controllers run unmodified.

`weft shims` makes this package importable as `p4utils`. Modules, classes and methods have p4-utils' names; those that
controllers and networks of public courses use are there, and others raise an error that names them.
"""
