"""fabric.p4 as the benchmarks run it: compiled once, switches programmed by the real controller, RoCEv2 frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from weft.controller.blocking import BlockingFabricController
from weft.controller.fabric import FabricController
from weft.controller.features import Settings
from weft.controller.grpc_targets import GrpcTarget, embedded_targets
from weft.controller.pipeline import Pipeline
from weft.controller.target import target_facts
from weft.paths import FABRIC_P4
from weft.scenario.program import Program, compile_program
from weft.switch.backend import SwitchBackend
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import Server
from weft.topologies import FabricSpec, NicSpec
from weft.topologies.addressing import CPU_PORT
from weft.traffic.layers import rdma_write_frame

FLOWS = 64
"""Queue pairs that a benchmark's frames belong to: more than one ECMP decision, register cell or cache line."""
PATIENCE_S = 600.0
"""For an answer: all switches of a large fabric are asked at once, and one process answers for them."""
_INT_HEADERS_BYTES = 120
_PLAIN_HEADERS_BYTES = 74


def compiled_fabric(folder: Path, lanes: int = 64) -> Program:
    """fabric.p4, compiled by our compiler into the folder, for aggregation packets of so many lanes."""
    return compile_program(FABRIC_P4, folder, macros={"AGGREGATION_LANES": str(lanes)})


@contextmanager
def programmed(
    fabric: FabricSpec, program: Program, targets: Mapping[str, GrpcTarget], target: str = "embedded"
) -> Iterator[BlockingFabricController]:
    """Every switch of the fabric with the program and all its entries, by P4Runtime; the controller that wrote them."""
    pipeline = Pipeline.load(program.p4info, program.json)
    settings = Settings(target=target_facts(target))
    with BlockingFabricController(
        FabricController(fabric, pipeline, targets, settings, timeout_s=PATIENCE_S)
    ) as controller:
        yield controller


def program_over_p4runtime(fabric: FabricSpec, program: Program, switches: Mapping[str, SwitchBackend]) -> None:
    """Have the controller write all entries into these switches (by name), through a P4Runtime server."""
    with controlled(fabric, program, switches):
        pass


@contextmanager
def controlled(
    fabric: FabricSpec, program: Program, switches: Mapping[str, SwitchBackend]
) -> Iterator[BlockingFabricController]:
    """The controller of these switches (by name), through a P4Runtime server. They keep what it has written."""
    devices = {spec.device_id: Device(spec.device_id, switches[spec.name], CPU_PORT) for spec in fabric.switches}
    server = Server(devices, "127.0.0.1:0")
    server.start()
    try:
        with programmed(fabric, program, embedded_targets(fabric, server.address)) as controller:
            yield controller
    finally:
        server.stop()


def roce_frames(
    fabric: FabricSpec, source: str, destination: str, size_bytes: int, *, telemetry: bool = True
) -> list[bytes]:
    """RDMA WRITE frames between two hosts in plane 0, one of each flow, of exactly this size.

    Without telemetry frames of 4n + 2 bytes exist only, so they are two bytes longer if need be.
    """
    a, b = fabric.host(source).nic(0), fabric.host(destination).nic(0)
    headers_bytes = _INT_HEADERS_BYTES if telemetry else _PLAIN_HEADERS_BYTES
    payload = bytes(size_bytes - headers_bytes)
    return [write_frame(a, b, flow, payload, telemetry=telemetry) for flow in range(FLOWS)]


def write_frame(source: NicSpec, destination: NicSpec, flow: int, payload: bytes, *, telemetry: bool = True) -> bytes:
    """An RDMA WRITE frame of a queue pair of its own for each flow, with or without space for INT."""
    frame = rdma_write_frame(
        source_mac=source.mac,
        destination_mac=source.gateway_mac,
        source_ip=str(source.ipv4.ip),
        destination_ip=str(destination.ipv4.ip),
        destination_qp=0x100 + flow,
        psn=flow,
        payload=payload,
        source_port=0xC000 + flow,
        int_telemetry=telemetry,
    )
    return bytes(frame)
