"""The virtual clock: a fabric in the discrete events of partitions, its controller between them, repeatable."""
