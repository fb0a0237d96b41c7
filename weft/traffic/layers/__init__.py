"""Scapy layers of every format on Weft's links. Importing this package binds them all."""

from scapy.contrib.mac_control import MACControlClassBasedFlowControl

from weft.traffic.layers.aggregation import AggregationHeader
from weft.traffic.layers.credit_update import CreditLane, CreditUpdate
from weft.traffic.layers.frames import aggregation_frame, rdma_write_frame
from weft.traffic.layers.icrc import icrc, icrc_is_valid, ip_packet_of
from weft.traffic.layers.int_shim import IntHop, IntShim
from weft.traffic.layers.mrc import (
    EETH,
    ERTH,
    HAS_TIMESTAMP,
    METH,
    MRC_OPCODE,
    NETH,
    PETH,
    RETRANSMISSION,
    SETH,
    TSETH,
    CCState,
)
from weft.traffic.layers.parameter import ParameterHeader, parameter_frame
from weft.traffic.layers.pfc import pfc_frame
from weft.traffic.layers.roce import (
    AETH,
    BTH,
    DETH,
    IETH,
    OPCODE,
    RETH,
    ROCE_UDP_PORT,
    AtomicAckETH,
    AtomicAETH,
    AtomicETH,
    CNPPadding,
    ImmDt,
    cnp,
)
from weft.traffic.layers.service import ServiceHeader, service_frame
from weft.traffic.layers.valiant_shim import ValiantShim

__all__ = [
    "AETH",
    "BTH",
    "DETH",
    "EETH",
    "ERTH",
    "HAS_TIMESTAMP",
    "IETH",
    "METH",
    "MRC_OPCODE",
    "NETH",
    "OPCODE",
    "PETH",
    "RETH",
    "RETRANSMISSION",
    "ROCE_UDP_PORT",
    "SETH",
    "TSETH",
    "AggregationHeader",
    "AtomicAETH",
    "AtomicAckETH",
    "AtomicETH",
    "CCState",
    "CNPPadding",
    "CreditLane",
    "CreditUpdate",
    "ImmDt",
    "IntHop",
    "IntShim",
    "MACControlClassBasedFlowControl",
    "ParameterHeader",
    "ServiceHeader",
    "ValiantShim",
    "aggregation_frame",
    "cnp",
    "icrc",
    "icrc_is_valid",
    "ip_packet_of",
    "parameter_frame",
    "pfc_frame",
    "rdma_write_frame",
    "service_frame",
]
