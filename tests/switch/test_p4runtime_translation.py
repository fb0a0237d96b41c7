"""Types that controllers see otherwise than the data plane (`@p4runtime_translation`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from finsy.proto import p4r, p4t, rpc_code
from hypothesis import given
from hypothesis import strategies as st
from p4runtime_client import P4RuntimeClient
from router_program import (
    ACL,
    ECMP,
    ROUTE,
    ROUTES,
    SET_PORT,
    VALUE_SET,
    entity,
    router_config,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tests.refusals import refused
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.errors import OUT_OF_RANGE, RESOURCE_EXHAUSTED, RequestError
from weft.switch.p4runtime.service import Server
from weft.switch.p4runtime.translation import TextTranslation, WidthTranslation
from weft.switch.p4runtime.value_sets import prefixes

PACKET = bytes(Ether() / IP(src="10.1.0.1", dst="10.2.0.2", ttl=9) / UDP())


def config(port: p4t.P4NewTypeTranslation) -> p4r.ForwardingPipelineConfig:
    """The router, its ports of a translated type, and its IP protocols texts."""
    made = router_config()
    info = made.p4info
    info.type_info.new_types["port_id_t"].translated_type.CopyFrom(port)
    protocol = info.type_info.new_types["protocol_t"]
    protocol.translated_type.sdn_string.SetInParent()
    protocol.annotations.append('@p4runtime_translation_mappings({{"tcp", 6}, {"", 0}, {"udp", 0x11}})')
    bits = port.sdn_bitwidth

    def translate(field: object) -> None:
        field.type_name.name, field.bitwidth = "port_id_t", bits  # type: ignore[attr-defined]

    for action in info.actions:
        for parameter in action.params:
            if parameter.name == "port":
                translate(parameter)
    for table in info.tables:
        for field in table.match_fields:
            if field.name == "ingress_port":
                translate(field)
            elif field.name == "ipv4.protocol":
                field.type_name.name, field.bitwidth = "protocol_t", 0
    for header in info.controller_packet_metadata:
        translate(header.metadata[0])
    return made


@pytest.fixture(params=["oracle", "native"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[P4RuntimeClient, OracleSwitch | NativeSwitch]]:
    switch = OracleSwitch() if request.param == "oracle" else NativeSwitch()
    server = Server({1: Device(1, switch, 510, port_names={"eth-a": 3, "eth-b": 4})}, "127.0.0.1:0")
    server.start()
    client = P4RuntimeClient(server.address)
    client.arbitrate()
    yield client, switch
    client.close()
    server.stop()


def route(port: str) -> str:
    return (
        f'table_entry {{ table_id: {ROUTES} match {{ field_id: 1 lpm {{ value: "\\n\\000\\000\\000" prefix_len: 8 }} }}'
        f' action {{ action {{ action_id: {ROUTE} params {{ param_id: 1 value: "{port}" }}'
        ' params { param_id: 2 value: "\\002" } } } }'
    )


def sent_by(switch: OracleSwitch | NativeSwitch) -> int:
    (output,) = switch.process(1, PACKET)
    return output.port if not isinstance(output, tuple) else output[0]


def arrive(switch: OracleSwitch | NativeSwitch, port: int) -> None:
    """A packet comes in that ends at the CPU port."""
    if isinstance(switch, NativeSwitch):
        switch.native.receive(port, PACKET)
    else:
        switch.process(port, PACKET)


Served = tuple[P4RuntimeClient, OracleSwitch | NativeSwitch]


def test_ports_by_the_names_of_their_interfaces(served: Served) -> None:
    client, switch = served
    text = p4t.P4NewTypeTranslation(uri="", sdn_string=p4t.P4NewTypeTranslation.SdnString())
    client.set_pipeline(config=config(text))
    for port, number in (("eth-b", 4), ("7", 7)):
        client.write("INSERT", route(port))
        assert sent_by(switch) == number
        assert client.read(entity("table_entry {}")) == [entity(route(port))]
        client.write("DELETE", route(port))
    error = client.write_error("INSERT", route("eth-c"))
    assert error.canonical_code == rpc_code.INVALID_ARGUMENT
    assert "unknown port 'eth-c' (valid: 'eth-a', 'eth-b', '7'" in error.message
    replicas = 'replicas { port: "eth-a" instance: 1 } replicas { port: "9" }'
    group = f"packet_replication_engine_entry {{ multicast_group_entry {{ multicast_group_id: 5 {replicas} }} }}"
    client.write("INSERT", group)
    query = "packet_replication_engine_entry { multicast_group_entry {} }"
    assert client.read(entity(query)) == [entity(group)]
    one_shot = (
        f'table_entry {{ table_id: {ECMP} match {{ field_id: 1 exact {{ value: "\\t" }} }} action {{'
        f' action_profile_action_set {{ action_profile_actions {{ weight: 1 watch_port: "eth-a"'
        f' action {{ action_id: {SET_PORT} params {{ param_id: 1 value: "eth-b" }} }} }} }} }} }}'
    )
    client.write("INSERT", one_shot)
    assert client.read(entity(f"table_entry {{ table_id: {ECMP} }}")) == [entity(one_shot)]


def test_packets_carry_the_names_of_ports(served: Served) -> None:
    client, switch = served
    text = p4t.P4NewTypeTranslation(uri="example/PortId_t", sdn_string=p4t.P4NewTypeTranslation.SdnString())
    client.set_pipeline(config=config(text))
    client.write("INSERT", route("510"))
    arrive(switch, 3)
    arrived = client.receive("packet").packet
    assert [each.value for each in arrived.metadata] == [b"eth-a", b"\x00"]
    out = p4r.PacketOut(payload=PACKET)
    for number, value in ((1, b"eth-c"), (2, b"\x00")):
        out.metadata.add(metadata_id=number, value=value)
    client.send(packet=out)
    assert "unknown port 'eth-c'" in client.receive("error").error.message


def test_ports_of_32_bits(served: Served) -> None:
    client, switch = served
    client.set_pipeline(config=config(p4t.P4NewTypeTranslation(uri="p4.org/psa/v1/PortId_t", sdn_bitwidth=32)))
    client.write("INSERT", route("\\004"))
    assert sent_by(switch) == 4
    client.write("MODIFY", route("\\377\\377\\377\\375"))  # SDN_PORT_CPU
    arrive(switch, 1)
    assert client.receive("packet").packet.payload[:6] == b"\0\0\0\0\0\x02"
    assert client.read(entity("table_entry {}")) == [entity(route("\\377\\377\\377\\375"))]
    assert client.write_error("MODIFY", route("\\002\\000")).canonical_code == rpc_code.OUT_OF_RANGE


def test_texts_match_as_a_whole(served: Served) -> None:
    client, switch = served
    client.set_pipeline(config=config(p4t.P4NewTypeTranslation(uri="x", sdn_bitwidth=32)))
    client.write("INSERT", route("\\004"))
    for priority, text in enumerate(("udp", "sctp", "", "9"), start=1):
        client.write(
            "INSERT",
            f'table_entry {{ table_id: {ACL} match {{ field_id: 3 optional {{ value: "{text}" }} }}'
            f" priority: {priority} action {{ action {{ action_id: 0x01000003 }} }} }}",
        )
    found = client.read(entity(f"table_entry {{ table_id: {ACL} }}"))
    by_priority = {each.table_entry.priority: each.table_entry.match[0].optional.value for each in found}
    assert by_priority == {1: b"udp", 2: b"sctp", 3: b"", 4: b"9"}
    assert switch.process(1, PACKET) == []  # UDP is denied


@given(st.lists(st.text(min_size=1, max_size=3), max_size=40))
def test_every_text_has_a_number_of_its_own(texts: list[str]) -> None:
    translation = TextTranslation(16, {"": 0}, open_ended=True)
    numbers = {text: translation.decode(text.encode()) for text in texts}
    assert len(set(numbers.values())) == len(numbers)
    for text, number in numbers.items():
        assert translation.decode(text.encode()) == number
        assert translation.encode(number) == text.encode()


def test_numbers_run_out() -> None:
    translation = TextTranslation(2, {}, open_ended=True)
    assert [translation.decode(text) for text in (b"a", b"3", b"b", b"a", b"0")] == [1, 3, 2, 1, 0]
    with pytest.raises(RequestError) as caught:
        translation.decode(b"c")
    assert caught.value.code == RESOURCE_EXHAUSTED
    with refused(RequestError, problem="not UTF-8"):
        translation.decode(b"\xff")


@given(st.integers(1, 64), st.integers(1, 64), st.data())
def test_widths(sdn_bits: int, width_bits: int, data: st.DataObject) -> None:
    translation = WidthTranslation(sdn_bits, width_bits, None)
    value = data.draw(st.integers(0, (1 << sdn_bits) - 1))
    encoded = value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")
    if value >> width_bits:
        with pytest.raises(RequestError) as caught:
            translation.decode(encoded)
        assert caught.value.code == OUT_OF_RANGE
    else:
        assert translation.encode(translation.decode(encoded)) == encoded


@given(st.integers(1, 9).flatmap(lambda bits: st.tuples(st.just(bits), *[st.integers(0, (1 << bits) - 1)] * 2)))
def test_prefixes_make_up_exactly_the_range(case: tuple[int, int, int]) -> None:
    bits, *bounds = case
    low, high = sorted(bounds)
    made = list(prefixes(low, high, bits))
    matched = [number for number in range(1 << bits) if any(number & mask == value for value, mask in made)]
    assert matched == list(range(low, high + 1))
    assert len(made) <= max(1, 2 * bits - 2)


def test_a_range_in_a_value_set_selects_what_lies_in_it(served: Served) -> None:
    client, switch = served
    ranged = router_config()
    ranged.p4info.value_sets[0].match[0].match_type = 5  # RANGE
    client.set_pipeline(config=ranged)
    client.write("INSERT", route("\\004"))
    bounds = 'range { low: "\\022\\064" high: "\\022\\100" }'
    member = f"value_set_entry {{ value_set_id: {VALUE_SET} members {{ match {{ field_id: 1 {bounds} }} }} }}"
    client.write("MODIFY", member)
    assert client.read(entity("value_set_entry {}")) == [entity(member)]

    def is_routed(ethertype: int) -> bool:
        packet = PACKET[:12] + ethertype.to_bytes(2, "big") + PACKET[14:]
        return [each if isinstance(each, int) else each[0] for each in _ports(switch.process(1, packet))] == [4]

    assert [is_routed(ethertype) for ethertype in (0x1233, 0x1234, 0x1239, 0x1240, 0x1241)] == [
        False, True, True, True, False,
    ]  # fmt: skip


def _ports(outputs: list[object]) -> list[int]:
    return [output[0] if isinstance(output, tuple) else output.port for output in outputs]  # type: ignore[attr-defined]
