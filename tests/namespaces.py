"""Network namespaces of a test's own."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread in the namespace; sockets stay in the one they were opened in."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as here, open(f"/var/run/netns/{namespace}", "rb") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns({namespace})")
        try:
            yield
        finally:
            if libc.setns(here.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns back")
