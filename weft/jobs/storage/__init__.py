"""Storage behind a fabric: devices, the commands that clients issue, and the breakdown of their latency."""
