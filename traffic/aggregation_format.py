"""Constants of the aggregation packet and addresses of jobs, without Scapy.

Format: ARCHITECTURE.md, "Aggregation packet".
"""

from __future__ import annotations

from enum import IntEnum

LANE_COUNT = 64
HEADER_VERSION = 1
UDP_LENGTH = 304
FRAME_BYTES = 338
CONTRIBUTION_QP = 0xA66000
RESULT_QP = 0xFFFFFF


class Kind(IntEnum):
    """Direction of an aggregation packet."""

    CONTRIBUTION = 0
    RESULT = 1


class Operation(IntEnum):
    """What a switch does with the lanes; sums wrap modulo 2^32."""

    SUM = 0
    MAX = 1
    MIN = 2


def group_ipv4(job_id: int) -> str:
    """Return the group address of a job's results. Raises ValueError outside 0 to 65535."""
    _check_job(job_id)
    return f"239.87.{job_id >> 8}.{job_id & 255}"


def group_mac(job_id: int) -> str:
    """Return the Ethernet address of a job's group (RFC 1112 §6.4: the group's low 23 bits)."""
    _check_job(job_id)
    return f"01:00:5e:57:{job_id >> 8:02x}:{job_id & 255:02x}"


def _check_job(job_id: int) -> None:
    if not 0 <= job_id <= 0xFFFF:
        raise ValueError(f"job id {job_id} (valid: 0 to 65535)")
