"""Connection matrices of htsim, the simulator of the Ultra Ethernet Consortium (github.com/ultraethernet/uet-htsim)."""
