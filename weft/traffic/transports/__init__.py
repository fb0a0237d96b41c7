"""Transports of hosts: what a scenario's `transport.protocol` names, a module for each."""
