"""Native discrete-event engine: clock, links, queues, switch runtime, NIC transports."""

from weft.engine._core import *
