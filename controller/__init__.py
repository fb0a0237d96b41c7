"""P4Runtime controller of a fabric: routes, ECN, INT, aggregation trees."""
