"""The inside of a host: NUMA nodes, PCIe switches, accelerators, NICs, and the links between them."""
