"""Files of `p4/include` by what their code does to a packet that it marks for dropping."""

ABSORBING_SOURCES = ("aggregation.p4", "synchronisation.p4")
"""They mark a packet only when its data have gone into the switch's registers."""
