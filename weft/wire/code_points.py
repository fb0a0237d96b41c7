"""Default code points of MRC (OCP MRC 1.0), and of UET, for which the specification names none."""

DSCP_NO_TRIM, DSCP_TRIMMABLE, DSCP_TRIMMABLE_RETX, DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP, DSCP_CONTROL = (
    *(0, 4, 8, 12),
    *(16, 46),
)
"""A switch that trims a packet gives it one of the two of trimmed packets."""
