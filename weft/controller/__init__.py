"""P4Runtime controller: routes, ECN, INT, aggregation trees, counters and health of a fabric's switches."""
