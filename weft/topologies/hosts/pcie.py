"""Rates of PCIe links.

Encodings: 128b/130b up to PCIe 5.0; in PCIe 6.0 flits of 256 B have 236 B of transaction layer packets (PCI-SIG, "PCI
Express 6.0 Specification"). A memory write adds 24 B to its data: a header of 4 double words with a 64-bit address,
4 B of framing with the sequence number, 4 B of CRC (Neugebauer et al., "Understanding PCIe performance for end host
networking", SIGCOMM 2018; Intel AN 708: 5 to 7 double words). In flits it is the header of 4 double words alone. Flow
control and acknowledgements of the data link layer are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from weft.quantities.text import Text

PCIE = Text("a PCIe generation and a number of lanes", r"\A[3-6]x(1|2|4|8|16)\Z", "5x16")
_TRANSFERS_PER_S = {3: 8 * 10**9, 4: 16 * 10**9, 5: 32 * 10**9, 6: 64 * 10**9}
_ENCODING = {3: Fraction(128, 130), 4: Fraction(128, 130), 5: Fraction(128, 130), 6: Fraction(236, 256)}
_OVERHEAD_BYTES = {3: 24, 4: 24, 5: 24, 6: 16}


@dataclass(frozen=True)
class PcieLink:
    """A PCIe link, the same in each direction."""

    generation: int
    lanes: int

    @classmethod
    def read(cls, text: str) -> PcieLink:
        """Return the link that `5x16` describes. Raises ValueError."""
        generation, lanes = re.split("x", PCIE.read(text))
        return cls(int(generation), int(lanes))

    def rate_bps(self, max_payload_bytes: int) -> int:
        """Return the rate of data in memory writes with this many bytes each."""
        of_data = Fraction(max_payload_bytes, max_payload_bytes + _OVERHEAD_BYTES[self.generation])
        return int(_TRANSFERS_PER_S[self.generation] * self.lanes * _ENCODING[self.generation] * of_data)
