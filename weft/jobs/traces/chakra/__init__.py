"""MLCommons Chakra execution traces: a file NAME.RANK.et per rank, and the process groups in NAME.json."""
