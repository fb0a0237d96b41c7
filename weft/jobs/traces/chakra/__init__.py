"""MLCommons Chakra execution traces: one file a rank, NAME.RANK.et, and the process groups in NAME.json."""
