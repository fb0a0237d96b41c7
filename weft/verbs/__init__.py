"""A host's RDMA device as programs on libibverbs find it: its files, its place in the host, its libraries."""
