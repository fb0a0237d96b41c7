"""Unmodified programs in virtual time: their places in hosts, what they wait for, and when they go on."""
