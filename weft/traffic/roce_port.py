"""The UDP port of RoCEv2 (IANA "roce"; InfiniBand Architecture, annex A17)."""

ROCE_UDP_PORT = 4791
