"""Writes the state of switches at given times of a run in virtual time (`observe.state_at`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from finsy.proto import p4r

from weft.clocks.virtual.lab import VirtualLab
from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.attached import virtual_lab
from weft.run.fabric import Fabric
from weft.switch.debug.states import FabricState, StateReader
from weft.switch.p4runtime.device import Device
from weft.system.writing import written_whole


class SwitchStates:
    """Writes state-TIME.json to a directory at each moment of the fabric's clock."""

    def __init__(self, moments_ps: Sequence[int], directory: Path, say: Callable[[str], None]) -> None:
        self._pending = sorted(set(moments_ps))
        self._directory = directory
        self._say = say

    def begin(self, fabric: Fabric) -> None:
        """See Attached. Raises EnvironmentLacksError unless the switches are in this process."""
        lab = virtual_lab(fabric, "observe.state_at")
        for moment_ps in self._pending:
            lab.loop.call_after_ps(max(0, moment_ps - lab.loop.now_ps()), partial(self._write, lab, moment_ps))

    def _write(self, lab: VirtualLab, moment_ps: int) -> None:
        self._pending.remove(moment_ps)
        path = self._directory / f"state-{shortest_time(moment_ps)}.json"
        with written_whole(path) as partial_path:
            partial_path.write_text(fabric_state(lab).model_dump_json(indent=1), encoding="utf-8")

    def end(self, fabric: Fabric) -> None:
        """See Attached. Reports the moments that the run did not reach."""
        lab = virtual_lab(fabric, "observe.state_at")
        for moment_ps in self._pending:
            self._say(f"no state-{shortest_time(moment_ps)}.json: the run was over at {format_time(lab.loop.now_ps())}")
        self._pending = []


def fabric_state(lab: VirtualLab) -> FabricState:
    """Return the current state of all switches."""
    reader = StateReader()
    switches = {}
    for switch in lab.fabric.switches:
        device = lab.devices[switch.device_id]
        switches[switch.name] = reader.read(
            lab.native_switch(switch.name), _groups(device, _profile_names(lab, switch.name))
        )
    return FabricState(time_ps=lab.loop.now_ps(), switches=switches, left_out=reader.left_out)


def _profile_names(lab: VirtualLab, switch: str) -> dict[int, str]:
    p4info = lab.programs.pipelines[switch].p4info
    return {each.preamble.id: each.preamble.name for each in p4info.action_profiles}


def _groups(device: Device, profiles: Mapping[int, str]) -> dict[str, dict[str, str]]:
    """Return multicast groups, clone sessions and action profile groups, read over P4Runtime."""
    replication = p4r.PacketReplicationEngineEntry
    queries = [
        p4r.Entity(packet_replication_engine_entry=replication(multicast_group_entry=p4r.MulticastGroupEntry())),
        p4r.Entity(packet_replication_engine_entry=replication(clone_session_entry=p4r.CloneSessionEntry())),
        p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    ]
    found: dict[str, dict[str, str]] = {}
    request = p4r.ReadRequest(device_id=device.device_id, entities=queries)
    for answer in device.read(request):
        for entity in answer.entities:
            kind, key, value = _group(entity, profiles)
            found.setdefault(kind, {})[key] = value
    return found


def _group(entity: p4r.Entity, profiles: Mapping[int, str]) -> tuple[str, str, str]:
    if entity.HasField("action_profile_group"):
        group = entity.action_profile_group
        members = [
            f"{each.member_id}" + (f" (weight {each.weight})" if each.weight != 1 else "") for each in group.members
        ]
        return (
            profiles[group.action_profile_id],
            str(group.group_id),
            f"members {', '.join(members)}",
        )
    engine = entity.packet_replication_engine_entry
    if engine.HasField("multicast_group_entry"):
        multicast = engine.multicast_group_entry
        return "multicast groups", str(multicast.multicast_group_id), _replicas(multicast.replicas)
    clone = engine.clone_session_entry
    return "clone sessions", str(clone.session_id), _replicas(clone.replicas)


def _replicas(replicas: Sequence[p4r.Replica]) -> str:
    ports = [int.from_bytes(each.port, "big") if each.HasField("port") else each.egress_port for each in replicas]
    return ", ".join(
        f"port {port}" + (f" (instance {each.instance})" if each.instance else "")
        for port, each in zip(ports, replicas, strict=True)
    )
