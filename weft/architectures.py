"""The P4 architecture that Weft supports, and include files that identify programs for other architectures."""

from __future__ import annotations

ARCHITECTURE = "v1model"

# The file that a program includes for each architecture; core.p4 belongs to all of them.
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
