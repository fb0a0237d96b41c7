"""The virtual clock: a fabric and its controller in one engine's discrete events, in one thread, repeatable."""
