"""Watched ports of weighted groups on simple_switch_grpc: why the controller leaves them out there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from p4runtime_client import P4RuntimeClient
from test_p4runtime_reference import PROGRAM, Names, group, member, pytestmark, reference  # noqa: F401

from weft.compiler import compile_artifacts

Members = dict[int, tuple[int, int]]
"""Weight and watched port of each; port 0: none."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[P4RuntimeClient]:
    made = compile_artifacts(Path(PROGRAM))
    info = text_format.Parse(made.p4info_text, p4i.P4Info())
    config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=made.json_text.encode())
    with reference(tmp_path_factory.mktemp("reference")) as address:
        connected = P4RuntimeClient(address)
        connected.arbitrate()
        connected.set_pipeline(config=config)
        names = Names(info)
        for number in (1, 2, 3):
            insert = p4r.Update(type=p4r.Update.INSERT, entity=names.entity(member(number)))
            connected.write_updates(insert)
        connected.names = names  # type: ignore[attr-defined]
        yield connected
        connected.close()


def write(client: P4RuntimeClient, kind: str, number: int, members: Members) -> None:
    listed = " ".join(
        f"members {{ member_id: {each} weight: {weight} " + (f'watch_port: "\\00{port}" }}' if port else "}")
        for each, (weight, port) in members.items()
    )
    entity = client.names.entity(group(number, listed, max_size=8))  # type: ignore[attr-defined]
    client.write_updates(p4r.Update(type=p4r.Update.Type.Value(kind), entity=entity))


def held(client: P4RuntimeClient, number: int) -> Members:
    query = p4r.Entity(action_profile_group=p4r.ActionProfileGroup(group_id=number))
    found = [each.action_profile_group for each in client.read(query)]
    (wanted,) = (each for each in found if each.group_id == number)
    return {each.member_id: (each.weight, int.from_bytes(each.watch_port, "big")) for each in wanted.members}


def test_weights_without_watched_ports_are_read_back_and_change(client: P4RuntimeClient) -> None:
    steps: list[Members] = [
        {1: (3, 0), 2: (1, 0), 3: (2, 0)},
        {1: (1, 0), 2: (1, 0), 3: (2, 0)},
        {2: (1, 0), 3: (3, 0)},
        {2: (1, 0)},
        {1: (2, 0), 2: (1, 0)},
    ]
    for number, members in enumerate(steps):
        write(client, "MODIFY" if number else "INSERT", 1, members)
        assert held(client, 1) == members


def test_one_watched_port_is_read_back_for_all_members(client: P4RuntimeClient) -> None:
    """Which one depends on what its memory holds."""
    write(client, "INSERT", 2, {1: (3, 1), 2: (1, 2)})
    found = held(client, 2)
    assert {number: weight for number, (weight, _) in found.items()} == {1: 3, 2: 1}
    assert len({port for _, port in found.values()}) == 1


def test_a_watched_member_cannot_be_removed_without_an_error(client: P4RuntimeClient) -> None:
    write(client, "INSERT", 3, {1: (1, 1), 2: (1, 2)})
    with pytest.raises(grpc.RpcError, match="Unexpected error in RPC handling"):
        write(client, "MODIFY", 3, {1: (1, 1)})
