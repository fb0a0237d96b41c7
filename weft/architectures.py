"""The architecture of P4 programs that Weft takes, and the files by which programs for others are recognised."""

from __future__ import annotations

ARCHITECTURE = "v1model"

# What a program includes for an architecture; core.p4 goes with every one.
ARCHITECTURES = {
    "v1model.p4": ARCHITECTURE,
    "psa.p4": "psa",
    "bmv2/psa.p4": "psa",
    "dpdk/psa.p4": "psa",
    "pna.p4": "pna",
    "dpdk/pna.p4": "pna",
    "tc/pna.p4": "pna",
    "ebpf_model.p4": "ebpf",
    "ubpf_model.p4": "ubpf",
    "xdp_model.p4": "xdp",
    "tna.p4": "tna",
    "t2na.p4": "t2na",
    "tofino1arch.p4": "tna",
    "tofino2arch.p4": "t2na",
    "xsa.p4": "xsa",
}
