"""RoCEv2 hosts: wire formats, transports, collectives and traffic patterns."""
