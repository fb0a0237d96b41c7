"""What p4-utils' controllers import: the network as a graph, and clients of its switches."""
