"""Storage behind a fabric: devices, the commands that clients issue, and where the time of each goes."""
