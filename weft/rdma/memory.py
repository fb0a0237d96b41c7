"""Protection domains and memory regions."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from weft.rdma.enums import AccessFlags, WCStatus
from weft.rdma.errors import VerbsError
from weft.rdma.work import SGE
from weft.visibility import internal

if TYPE_CHECKING:
    from weft.rdma.device import Device

MAX_REGION_BYTES = 1 << 31
_REMOTE_WRITERS = AccessFlags.IBV_ACCESS_REMOTE_WRITE | AccessFlags.IBV_ACCESS_REMOTE_ATOMIC
_ALL = (
    AccessFlags.IBV_ACCESS_LOCAL_WRITE
    | AccessFlags.IBV_ACCESS_REMOTE_WRITE
    | AccessFlags.IBV_ACCESS_REMOTE_READ
    | AccessFlags.IBV_ACCESS_REMOTE_ATOMIC
)


class PD:
    """The protection domain of a device, which has one: a second is refused."""

    def __init__(self, device: Device) -> None:
        device.take_protection_domain()
        self.device = device
        self._regions: dict[int, MR] = {}

    @internal
    def region(self, lkey: int) -> MR | None:
        """Return the region of an lkey; None if there is none."""
        return self._regions.get(lkey)

    @internal
    def add(self, region: MR) -> None:
        """Note a region that was registered."""
        self._regions[region.lkey] = region

    @internal
    def remove(self, region: MR) -> None:
        """Forget a region."""
        self._regions.pop(region.lkey, None)

    @internal
    def local_status(self, sge: SGE, is_written: bool) -> WCStatus:
        """Return whether this host may use a range: success, or a local protection error."""
        region = self.region(sge.lkey)
        if region is None or not region.addr <= sge.addr <= region.addr + region.length - sge.length:
            return WCStatus.IBV_WC_LOC_PROT_ERR
        if is_written and AccessFlags.IBV_ACCESS_LOCAL_WRITE not in region.access:
            return WCStatus.IBV_WC_LOC_PROT_ERR
        return WCStatus.IBV_WC_SUCCESS


class MR:
    """Registered memory. The NIC reads and writes the buffer itself, nothing is copied.

    Args:
        pd: the protection domain.
        memory: a C-contiguous buffer (bytearray, NumPy array), or a number of bytes to allocate.
        access: what this host and its peers may do; remote writes and atomics need IBV_ACCESS_LOCAL_WRITE, too.

    Raises VerbsError for flags that do not go together, and for a buffer that is empty, not contiguous, or read-only
    where the NIC would write.
    """

    def __init__(self, pd: PD, memory: Any, access: AccessFlags) -> None:
        if access & ~_ALL:
            raise VerbsError(f"access flags {int(access)}", valid=f"combinations of {int(_ALL)}")
        if access & _REMOTE_WRITERS and AccessFlags.IBV_ACCESS_LOCAL_WRITE not in access:
            raise VerbsError("remote writes and atomics need IBV_ACCESS_LOCAL_WRITE, too")
        if isinstance(memory, int):
            if not 0 < memory <= MAX_REGION_BYTES:
                raise VerbsError(f"a memory region of {memory} bytes", valid=f"1 to {MAX_REGION_BYTES}")
            memory = bytearray(memory)
        try:
            view = memoryview(memory)
            self.length = view.nbytes
            if not 0 < self.length <= MAX_REGION_BYTES:
                raise VerbsError(f"a memory region of {self.length} bytes", valid=f"1 to {MAX_REGION_BYTES}")
            self.pd, self.access = pd, AccessFlags(access)
            self.addr = pd.device.take_addresses(self.length)
            self._native = pd.device.port.nic.register_memory(
                memory,
                virtual_address=self.addr,
                remote_write=AccessFlags.IBV_ACCESS_REMOTE_WRITE in access,
                remote_read=AccessFlags.IBV_ACCESS_REMOTE_READ in access,
                remote_atomic=AccessFlags.IBV_ACCESS_REMOTE_ATOMIC in access,
                local_write=AccessFlags.IBV_ACCESS_LOCAL_WRITE in access,
            )
        except (TypeError, ValueError, BufferError) as error:
            raise VerbsError(f"memory that cannot be registered: {error}") from None
        self.buf = memory
        """The buffer."""
        self.lkey = self.rkey = self._native.rkey
        self.is_open = True
        pd.add(self)

    @property
    @internal
    def native(self) -> Any:
        """The engine's region."""
        return self._native

    def sge(self, offset: int = 0, length: int | None = None) -> SGE:
        """Return the scatter/gather element of a range, by default of all from `offset` on."""
        return SGE(self.addr + offset, self.length - offset if length is None else length, self.lkey)

    def write(self, data: bytes, offset: int = 0) -> None:
        """Copy bytes into the buffer. VerbsError: they do not fit."""
        if offset < 0 or offset + len(data) > self.length:
            raise VerbsError(f"bytes {offset} to {offset + len(data)} of a region of {self.length}")
        memoryview(self.buf).cast("B")[offset : offset + len(data)] = data

    def read(self, length: int, offset: int = 0) -> bytes:
        """Return a copy of bytes of the buffer. VerbsError: they are not in it."""
        if offset < 0 or length < 0 or offset + length > self.length:
            raise VerbsError(f"bytes {offset} to {offset + length} of a region of {self.length}")
        return bytes(memoryview(self.buf).cast("B")[offset : offset + length])

    def close(self) -> None:
        """Deregister it: its keys are refused from now on."""
        if not self.is_open:
            raise VerbsError("this memory region was closed before", errno.EINVAL)
        self.is_open = False
        self.pd.remove(self)
        self._native.deregister()
