"""The cache of p4/include/services, on both implementations of the switch, by docs/spec/services.md."""

from __future__ import annotations

import itertools
import json
from ipaddress import ip_address

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import Twin
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, raw

from weft.compiler import compile_file
from weft.paths import FABRIC_P4
from weft.switch.backend import ActionCall, ExactMatch, LpmMatch, SwitchBackend, TableEntry
from weft.topologies.addressing import IpVersion
from weft.traffic.layers import BTH, DETH, ParameterHeader, icrc_is_valid, parameter_frame
from weft.traffic.service_format import BLOCK_BYTES, ParameterKind

CACHE = "FabricIngress.parameter_cache."
MAC, NEXT_MAC = "02:01:00:00:00:00", "02:00:00:00:00:09"
OWN: dict[IpVersion, str] = {4: "10.0.0.254", 6: "fd00::fe"}
STORE: dict[IpVersion, str] = {4: "10.0.0.1", 6: "fd00::1"}
CLIENT: dict[IpVersion, str] = {4: "10.0.0.2", 6: "fd00::2"}
STORE_PORT, CLIENT_PORT, UPLINK, STRANGER = 1, 2, 3, 4
GROUPS: dict[IpVersion, int] = {4: 1, 6: 2}
QKEY, CACHED = 0xDEADBEEF, 4
EPOCHS = itertools.count(1)
REASONS = {
    name: 48 + number
    for number, name in enumerate(("foreign_port", "bad_header", "bad_icrc", "wrong_role", "wrong_qkey", "wrong_epoch"))
}


def number(address: str) -> int:
    return int(address.replace(":", ""), 16)


def set_group(switch: SwitchBackend, epoch: int, modify: bool = True) -> None:
    for version, group in GROUPS.items():
        call = ActionCall(f"{CACHE}set_parameter_group", (QKEY, epoch, CACHED, int(ip_address(STORE[version]))))
        entry = TableEntry((ExactMatch(group),), call)
        (switch.table_modify if modify else switch.table_insert)(f"{CACHE}parameter_group", entry)


def configure(switch: SwitchBackend) -> None:
    identity = (1, 1, number(MAC), *(int(ip_address(OWN[version])) for version in (4, 6)), 0, 0, 0, 0)
    switch.table_set_default(
        "FabricIngress.identity.identity", ActionCall("FabricIngress.identity.set_identity", identity)
    )
    set_group(switch, 1, modify=False)
    roles = {
        STORE_PORT: ("parameter_store", ()),
        CLIENT_PORT: ("parameter_client", (7,)),
        UPLINK: ("parameter_transit", ()),
    }
    for group, (port, (name, arguments)) in itertools.product(GROUPS.values(), roles.items()):
        entry = TableEntry((ExactMatch(group), ExactMatch(port)), ActionCall(f"{CACHE}{name}", arguments))
        switch.table_insert(f"{CACHE}parameter_port", entry)
    for addresses, port in ((STORE, STORE_PORT), (CLIENT, CLIENT_PORT)):
        for version, bits in ((4, 32), (6, 128)):
            call = ActionCall("FabricIngress.forwarding.set_next_hop", (port, number(MAC), number(NEXT_MAC)))
            entry = TableEntry((LpmMatch(int(ip_address(addresses[version])), bits),), call)
            switch.table_insert(f"FabricIngress.forwarding.ipv{version}_lpm", entry)


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(json.dumps(compile_file(FABRIC_P4, defines={"SERVICE_PARAMETER_CACHE": "1"}).json).encode())
    made.both(configure)
    return made


def block(seed: int) -> bytes:
    return bytes((seed * 31 + place) % 256 for place in range(BLOCK_BYTES))


def packet(kind: ParameterKind, version: IpVersion = 4, **fields: object) -> Packet:
    asks = kind in (ParameterKind.PULL, ParameterKind.PUSH)
    source, destination = (CLIENT, STORE) if asks else (STORE, CLIENT)
    return parameter_frame(
        source_mac=NEXT_MAC,
        destination_mac=MAC,
        source_ip=source[version],
        destination_ip=destination[version],
        qkey=QKEY,
        kind=kind,
        **({"group_id": GROUPS[version], "epoch": 1, "client": 7} | fields),
    )


class Cache:
    """One block as the specification has it."""

    def __init__(self) -> None:
        self.latest, self.data = 0, b""

    def value(self, version: int, data: bytes) -> None:
        if version >= self.latest:
            self.latest, self.data = version, data

    def done(self, version: int) -> None:
        if version > self.latest:
            self.latest, self.data = version, b""


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([4, 6]),
    st.lists(
        st.tuples(
            st.sampled_from([*ParameterKind, ParameterKind.PULL, ParameterKind.VALUE]),
            st.integers(0, CACHED),  # the last one is not cached
            st.integers(1, 4),
            st.booleans(),
        ),
        max_size=40,
    ),
)
def test_pulls_find_the_latest_version_that_has_passed(
    twin: Twin, version: IpVersion, taken: list[tuple[ParameterKind, int, int, bool]]
) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_group(switch, epoch))
    known = [Cache() for _ in range(CACHED)]
    for kind, place, block_version, from_afar in taken:
        asks = kind in (ParameterKind.PULL, ParameterKind.PUSH)
        fields = {"epoch": epoch, "block": place, "sequence": 5}
        if not asks:
            fields["block_version"] = block_version
        frame = packet(kind, version, block_data=block(block_version), **fields)
        ((port, data),) = twin.process((UPLINK if from_afar else CLIENT_PORT) if asks else STORE_PORT, raw(frame))
        sent = Ether(data)
        assert icrc_is_valid(data)
        if kind is ParameterKind.PULL and place < CACHED and known[place].data:
            header = sent[ParameterHeader]
            assert (port, header.kind, header.flags) == (CLIENT_PORT, ParameterKind.VALUE, 1)
            assert (header.block_version, sent[Raw].load) == (known[place].latest, known[place].data)
            assert (header.client, header.sequence, sent[BTH].dqpn) == (7, 5, 0xA66003)
            ip = sent[IPv6 if version == 6 else IP]
            assert (ip.src, ip.dst) == (STORE[version], CLIENT[version])
            continue
        assert port == (STORE_PORT if asks else CLIENT_PORT)
        assert (sent[ParameterHeader].kind, sent[ParameterHeader].flags) == (kind, 0)
        if place < CACHED and kind is ParameterKind.VALUE:
            known[place].value(block_version, block(block_version))
        if place < CACHED and kind is ParameterKind.DONE:
            known[place].done(block_version)


def changed(layer: type[Packet], name: str, value: object, kind: ParameterKind = ParameterKind.PULL) -> Packet:
    frame = packet(kind)
    frame[layer].setfieldval(name, value)
    return frame


PULL, PUSH, VALUE, DONE = ParameterKind
FORGERIES = {
    "a stranger's pull": (STRANGER, "foreign_port", packet(PULL)),
    "a stranger's value": (STRANGER, "foreign_port", packet(VALUE)),
    "a client's value": (CLIENT_PORT, "wrong_role", packet(VALUE, block_version=9)),
    "a client's notice of a push": (CLIENT_PORT, "wrong_role", packet(DONE, block_version=9)),
    "the store's pull": (STORE_PORT, "wrong_role", packet(PULL)),
    "another client's pull": (CLIENT_PORT, "wrong_role", packet(PULL, client=8)),
    "a pull from another host": (CLIENT_PORT, "wrong_role", changed(IP, "dst", CLIENT[4])),
    "a value of another host": (STORE_PORT, "wrong_role", changed(IP, "src", CLIENT[4], VALUE)),
    "a wrong key": (CLIENT_PORT, "wrong_qkey", changed(DETH, "qkey", 1)),
    "an old epoch": (CLIENT_PORT, "wrong_epoch", packet(PULL, epoch=0)),
    "an answer's flag": (CLIENT_PORT, "bad_header", packet(PULL, flags=1)),
    "reserved bits": (CLIENT_PORT, "bad_header", packet(PULL, reserved=1)),
    "an unknown kind": (CLIENT_PORT, "bad_header", changed(ParameterHeader, "kind", 4)),
    "a value to the store": (CLIENT_PORT, "bad_header", changed(BTH, "dqpn", 0xA66002, VALUE)),
    "a pull to a client": (CLIENT_PORT, "bad_header", changed(BTH, "dqpn", 0xA66003)),
    "a push without a block": (CLIENT_PORT, "bad_header", changed(ParameterHeader, "kind", PUSH)),
    "an IP length beyond the packet": (CLIENT_PORT, "bad_header", changed(IP, "len", 400)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_counted_by_reason_and_go_nowhere(twin: Twin, name: str) -> None:
    port, reason, frame = FORGERIES[name]
    twin.both(lambda switch: set_group(switch, 1))
    key = (ExactMatch(REASONS[reason]),)

    def drops() -> int:
        return twin.native.direct_counter_read("FabricIngress.drops.drops", key, 0).packets

    before = drops()
    assert twin.process(port, raw(frame)) == []
    assert drops() == before + 1


def test_a_value_whose_icrc_is_wrong_is_not_cached(twin: Twin) -> None:
    epoch = next(EPOCHS)
    twin.both(lambda switch: set_group(switch, epoch))
    frame = bytearray(raw(packet(VALUE, epoch=epoch, block_version=3)))
    frame[-20] ^= 1
    assert twin.process(STORE_PORT, bytes(frame)) == []
    ((port, _),) = twin.process(CLIENT_PORT, raw(packet(PULL, epoch=epoch)))
    assert port == STORE_PORT


def test_packets_of_other_groups_are_forwarded_as_ever(twin: Twin) -> None:
    ((port, _),) = twin.process(STRANGER, raw(packet(PULL, group_id=9)))
    assert port == STORE_PORT
