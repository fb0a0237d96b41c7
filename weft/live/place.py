"""Address and port at which the page is served."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from weft.errors import BadInputError

DEFAULT_PORT = 9465
_LOOPBACK = "127.0.0.1"
_BRACKETED = re.compile(r"\[(?P<address>[^]]*)\](:(?P<port>.*))?")
_PLAIN = re.compile(r"(?P<address>[^:]*):(?P<port>[^:]*)")


@dataclass(frozen=True)
class Place:
    """An address of this machine and a port; port 0 means any free port."""

    address: str = _LOOPBACK
    port: int = DEFAULT_PORT

    @classmethod
    def of(cls, text: str) -> Place:
        """Parse `PORT`, `ADDRESS`, `ADDRESS:PORT` or `[IPV6]:PORT`. Raises BadInputError."""
        if text.isascii() and text.isdigit():
            return cls(port=_port(text, text))
        match = _BRACKETED.fullmatch(text) or _PLAIN.fullmatch(text)
        address, port = (match["address"], match["port"]) if match else (text, None)
        try:
            found = ip_address(_LOOPBACK if address == "localhost" else address)
        except ValueError:
            raise _wrong(text) from None
        return cls(str(found), DEFAULT_PORT if port is None else _port(port, text))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        return ip_address(self.address).is_loopback


def _port(text: str, whole: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise _wrong(whole)
    return int(text)


def _wrong(text: str) -> BadInputError:
    return BadInputError(
        f"--web {text!r}: is not a place to serve a page",
        valid=f"a port up to 65535, an IP address, or both as 127.0.0.1:{DEFAULT_PORT} or [::1]:{DEFAULT_PORT}",
    )
