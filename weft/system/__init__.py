"""The underlying machine: processes, signals, scratch directories, atomic file writes, consoles."""
