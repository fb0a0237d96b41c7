"""The libraries that RDMA programs load, and the variables by which they find them and the device."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

LIBRARY_DIRECTORY = Path(__file__).resolve().parent / "lib"
"""Where setup.py builds them, from verbs/."""
INCLUDE_DIRECTORY = LIBRARY_DIRECTORY.with_name("include")
"""Headers of libmrc."""
PRELOAD = LIBRARY_DIRECTORY / "libweft-preload.so"
VIRTUAL_TIME = LIBRARY_DIRECTORY / "libweft-virtual-time.so"
"""By which a process lives in a run's virtual time."""
SOCKET_VARIABLE = "WEFT_VERBS_SOCKET"
"""Names the socket of the host's NIC process for the provider and the preloaded library."""

_PROVIDER = LIBRARY_DIRECTORY / "libweft"  # libibverbs adds -rdmavNN.so
_LIBIBVERBS = "libibverbs.so.1"
_PRIVATE_ABI = re.compile(rb"\0IBVERBS_PRIVATE_(\d+)\0")
_USED = (b"libibverbs.so", b"librdmacm.so")
_MOST_BYTES_READ = 1 << 26


def missing_because() -> str:
    """Return why programs of a lab's hosts find no RDMA device here; "" if they find one."""
    if not PRELOAD.exists():
        return (
            "Weft was built without the headers of libibverbs: "
            "apt install libibverbs-dev, then build Weft again (make setup, or pip install .)"
        )
    # LD_PRELOAD and IBV_DRIVERS are lists, and neither has a way to quote.
    if re.search(r"[\s:;]", str(LIBRARY_DIRECTORY)):
        return f"{LIBRARY_DIRECTORY}: a path in LD_PRELOAD has no space, colon or semicolon: move Weft elsewhere"
    library = libibverbs()
    if library is None:
        return f"there is no {_LIBIBVERBS}: apt install libibverbs1"
    number = private_abi(library)
    if number is None or not Path(f"{_PROVIDER}-rdmav{number}.so").exists():
        built = ", ".join(sorted(re.findall(r"rdmav(\d+)", " ".join(map(str, LIBRARY_DIRECTORY.iterdir())))))
        return f"{library} has private ABI {number}, and there is no provider for it (there is one for {built})"
    return ""


def libibverbs() -> Path | None:
    """Return the distribution's libibverbs; None if there is none in the usual places."""
    places = ("/usr/lib/*-linux-gnu*", "/usr/lib64", "/usr/lib", "/lib/*-linux-gnu*", "/lib64", "/usr/local/lib")
    root = Path("/")
    return next((path for place in places for path in sorted(root.glob(f"{place[1:]}/{_LIBIBVERBS}"))), None)


def private_abi(library: Path) -> int | None:
    """Return the version of a libibverbs' private structures, which its symbols name; None if they name none."""
    numbers = [int(number) for number in _PRIVATE_ABI.findall(library.read_bytes())]
    return max(numbers, default=None)


def uses_verbs(program: Path) -> bool:
    """Return whether a program is linked to libibverbs or librdmacm itself."""
    try:
        with program.open("rb") as file:
            content = file.read(_MOST_BYTES_READ)
    except OSError:
        return False
    return content.startswith(b"\x7fELF") and any(name in content for name in _USED)


def variables(socket: str, present: Mapping[str, str] = os.environ, *, more: Sequence[Path] = ()) -> dict[str, str]:
    """Return the environment variables of a host's programs, by which they find its device.

    Args:
        socket: of the host's NIC process.
        present: what is set already: lists are added to.
        more: libraries to load before Weft's usual one, such as `VIRTUAL_TIME`.
    """
    # libibverbs looks at IBV_DRIVERS only where its older name is not set.
    drivers = "RDMAV_DRIVERS" if "RDMAV_DRIVERS" in present else "IBV_DRIVERS"
    return {
        SOCKET_VARIABLE: socket,
        "SYSFS_PATH": "/sys",
        drivers: ":".join(_added(str(_PROVIDER), present.get(drivers, ""))),
        "LD_PRELOAD": ":".join([*map(str, more), *_added(str(PRELOAD), present.get("LD_PRELOAD", ""))]),
        "LD_LIBRARY_PATH": ":".join(_added(str(LIBRARY_DIRECTORY), present.get("LD_LIBRARY_PATH", ""))),
    }


def _added(path: str, present: str) -> Iterator[str]:
    """Yield a path and then a list's other paths."""
    yield path
    yield from (each for each in re.split(r"[:;\s]+", present) if each not in ("", path))
