"""Priority flow control frames (IEEE 802.1Qbb, IEEE 802.1Q-2018 clause 36.1.3)."""

from __future__ import annotations

from collections.abc import Mapping

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from weft.errors import InvalidValueError
from weft.quantities.traffic_classes import CLASSES


def pfc_frame(source_mac: str, pause_quanta: Mapping[int, int]) -> Packet:
    """Return a PFC frame that pauses each class of `pause_quanta` for that many quanta (0 resumes it).

    A quantum is 512 bit times. Raises ValueError for a class outside 0 to 7 or quanta outside 16 bits.
    """
    pause = MACControlClassBasedFlowControl()
    for priority_class, quanta in pause_quanta.items():
        if not 0 <= priority_class < CLASSES:
            raise InvalidValueError(f"priority class {priority_class}", valid=f"0 to {CLASSES - 1}")
        if not 0 <= quanta <= 0xFFFF:
            raise InvalidValueError(f"{quanta} pause quanta for class {priority_class}", valid="0 to 65535")
        pause.setfieldval(f"c{priority_class}_enabled", 1)
        pause.setfieldval(f"c{priority_class}_pause_time", quanta)
    return Ether(src=source_mac, dst=MACControlClassBasedFlowControl.DEFAULT_DST_MAC) / pause
