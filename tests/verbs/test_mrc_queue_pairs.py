"""Queue pairs of MRC of clients, and control of EVs: their data, their rules, and clients that break them."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator

import pytest

from tests.verbs.mrc_hosts import TO_INIT, TO_RTR, TO_RTS, Client, Hosts, Pair, address
from weft.traffic.verbs.ev_control import EvState, ProfileAttribute
from weft.traffic.verbs.mrc import MrcAttribute
from weft.traffic.verbs.protocol import KINDS
from weft.traffic.verbs.states import Attribute, Kind, State

M, P = MrcAttribute, ProfileAttribute
WRITE, WRITE_IMMEDIATE, SEND, READ, ATOMIC = 0, 1, 2, 4, 6
SUCCESS, LOCAL_OPERATION, FLUSHED = 0, 2, 5
FREE = P.STATE | P.MODE | P.COUNT
AUTO, EXPLICIT, GENERATED = 1, 2, 4
OFFLINE, ONLINE = 1, 2


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    made = Hosts()
    yield made
    made.close()


@pytest.fixture
def ends(hosts: Hosts) -> Iterator[tuple[Client, Client]]:
    made = Client(hosts, 0), Client(hosts, 1)
    yield made
    for each in made:
        each.close()


def refusal(error: int, client: Client, name: str, **fields: int) -> None:
    with pytest.raises(OSError, check=lambda refused: refused.errno == error):
        client.ask(name, **fields)


def connected(ends: tuple[Client, Client], planes: tuple[int, int] = (0, 0)) -> tuple[Pair, Pair]:
    a, b = (Pair(each) for each in ends)
    a.connect(b, 1, planes[0])
    b.connect(a, 0, planes[1])
    return a, b


@pytest.mark.parametrize("planes", [(0, 0), (1, 0)])
def test_writes_cross_both_planes_whichever_port_the_program_names(
    hosts: Hosts, ends: tuple[Client, Client], planes: tuple[int, int]
) -> None:
    a, b = connected(ends, planes)
    ends[0].buffer.raw = random.Random(3).randbytes(len(ends[0].buffer))
    b.receive(11)
    a.write(WRITE, ends[1], 40_000, work_id=1)
    a.write(WRITE_IMMEDIATE, ends[1], 5, immediate=socket.htonl(77), work_id=2)
    assert [(each["work_id"], each["status"]) for each in ends[0].completions(2)] == [(1, SUCCESS), (2, SUCCESS)]
    [arrived] = ends[1].completions(1)
    assert (arrived["work_id"], arrived["status"], arrived["length_bytes"]) == (11, SUCCESS, 5)
    assert socket.ntohl(arrived["immediate"]) == 77
    assert ends[1].buffer.raw[:40_000] == ends[0].buffer.raw[:40_000]
    sent = [plane.transmit_port.stats()["transmitted"]["bytes"] for plane in hosts.hosts[0].planes]
    assert min(sent) > 0.5 * max(sent)
    assert hosts.hosts[0].totals()["data_bytes_sent"] >= 40_005


@pytest.mark.parametrize("opcode", [SEND, READ, ATOMIC, 7, 1 << 31])
def test_what_mrc_does_not_carry_ends_its_queue_pair_alone(ends: tuple[Client, Client], opcode: int) -> None:
    a, _ = connected(ends)
    other, _ = connected(ends)
    a.write(opcode, ends[1], 8)
    assert ends[0].completions(1)[0]["status"] == LOCAL_OPERATION
    a.write(WRITE, ends[1], 8)
    assert ends[0].completions(1)[0]["status"] == FLUSHED
    assert a.query()["state"] == State.ERR
    other.write(WRITE, ends[1], 8)
    assert ends[0].completions(1)[0]["status"] == SUCCESS


def test_an_immediate_that_meets_no_receive_ends_the_connection(ends: tuple[Client, Client]) -> None:
    a, _ = connected(ends)
    a.write(WRITE_IMMEDIATE, ends[1], 8)
    assert ends[0].completions(1)[0]["status"] not in (SUCCESS, FLUSHED)


def test_a_port_that_is_disabled_in_the_middle(hosts: Hosts, ends: tuple[Client, Client]) -> None:
    a, _ = connected(ends)
    for number in range(16):
        a.write(WRITE, ends[1], 60_000, work_id=number)
    ends[0].ask("modify_port_admin", port=1, is_enabled=0)
    assert [ends[0].ask("query_port_admin", port=port)["is_enabled"] for port in (1, 2)] == [0, 1]
    assert [ends[0].ask("query_port", port=port)["state"] for port in (1, 2)] == [1, 4]
    assert {each["status"] for each in ends[0].completions(16)} == {SUCCESS}
    before = hosts.hosts[0].planes[0].transmit_port.stats()["transmitted"]["bytes"]
    a.write(WRITE, ends[1], 60_000)
    assert ends[0].completions(1)[0]["status"] == SUCCESS
    assert hosts.hosts[0].planes[0].transmit_port.stats()["transmitted"]["bytes"] == before
    ends[0].ask("modify_port_admin", port=1, is_enabled=1)
    assert ends[0].ask("query_port", port=1)["state"] == 4


def test_attributes_are_those_of_the_lab_until_a_program_changes_them(ends: tuple[Client, Client]) -> None:
    pair = Pair(ends[0])
    before = pair.query()
    assert (before["mpr"], before["linear_retries"], before["exponential_retries"]) == (128, 0, 7)
    assert before["mrc_timeout"] > 0
    pair.modify(State.INIT, TO_INIT, access=2)
    with pytest.raises(OSError, match="mpr_dest 129"):
        pair.modify(State.RTR, TO_RTR, mrc_mask=M.MPR_DEST, mpr_dest=129)
    assert pair.query()["state"] == State.INIT
    assert pair.query()["mpr_dest"] == 128
    pair.modify(State.RESET, Attribute.STATE)
    assert {**pair.query(), "access": 0} == before


@pytest.mark.parametrize(
    ("mask", "fields", "error"),
    [
        (M.MPR, {"mpr": 1}, errno.EINVAL),  # belongs to another transition
        (M.MAX_WIMM_DEST, {"max_wimm_dest": 1}, errno.EINVAL),
        (M.EV_PROFILE_ID, {"ev_profile": 9}, errno.EINVAL),
        (M.EV_PROFILE_ID, {"ev_profile": 2**64 - 1}, errno.EINVAL),
        (M.CC_PROFILE_ID, {"cc_profile": 1}, errno.EINVAL),
        (M.CAP, {"mrc_capabilities": 1}, errno.EOPNOTSUPP),
        (M.CAP, {"mrc_capabilities": 1 << 40}, errno.EOPNOTSUPP),
        (1 << 7, {}, errno.EINVAL),  # hints stay in the library
        (1 << 63, {}, errno.EINVAL),
    ],
)
def test_attributes_of_init_that_cannot_be(
    ends: tuple[Client, Client], mask: int, fields: dict[str, int], error: int
) -> None:
    pair = Pair(ends[0])
    refusal(
        error,
        ends[0],
        "modify_queue_pair",
        queue_pair=pair.made["queue_pair"],
        mask=TO_INIT,
        state=State.INIT,
        mrc_mask=mask,
        **fields,
    )
    assert pair.query()["state"] == State.RESET


@pytest.mark.parametrize(
    ("address_port", "peer", "error"),
    [
        (1, address(1, 1), errno.EINVAL),  # of the other plane
        (1, "10.9.9.9", errno.EINVAL),
        (2, address(1, 0), errno.EINVAL),
        (3, address(1, 0), errno.EINVAL),
        (1, address(0, 0), errno.EOPNOTSUPP),  # its own
    ],
)
def test_addresses_that_lead_nowhere(ends: tuple[Client, Client], address_port: int, peer: str, error: int) -> None:
    pair = Pair(ends[0])
    pair.modify(State.INIT, TO_INIT, access=2)
    gid_low = 0xFFFF << 32 | int.from_bytes(socket.inet_aton(peer))
    refusal(
        error,
        ends[0],
        "modify_queue_pair",
        queue_pair=pair.made["queue_pair"],
        mask=TO_RTR,
        state=State.RTR,
        path_mtu=3,
        remote_number=5,
        is_global=1,
        gid_low=gid_low,
        address_port=address_port,
    )


def test_queue_pairs_of_others_take_no_attributes_of_mrc(ends: tuple[Client, Client]) -> None:
    made = ends[0].create(type=Kind.RC)
    mask = TO_INIT | Attribute.PKEY_INDEX | Attribute.PORT
    fields = {"queue_pair": made["queue_pair"], "mask": mask, "state": State.INIT, "port": 1}
    refusal(errno.EINVAL, ends[0], "modify_queue_pair", **fields, mrc_mask=M.MPR, mpr=1)
    ends[0].ask("modify_queue_pair", **fields)


def test_a_shared_queue_and_another_transport_are_refused(ends: tuple[Client, Client]) -> None:
    shared = ends[0].ask("create_shared_queue", domain=ends[0].domain, max_requests=4, max_pieces=1)["queue"]
    sizes = {"domain": ends[0].domain, "send_queue": ends[0].queue, "receive_queue": ends[0].queue}
    refusal(errno.EINVAL, ends[0], "create_queue_pair", type=Kind.MRC, shared_queue=shared, **sizes)
    refusal(errno.EOPNOTSUPP, ends[0], "create_queue_pair", type=0xFF, **sizes)
    others = Hosts("rc")
    client = Client(others, 0)
    assert client.ask("query_mrc_device")["is_supported"] == 0
    with pytest.raises(OSError, match=r"transport\.protocol: mrc"):
        client.create()
    refusal(errno.EOPNOTSUPP, client, "query_ev_profile", profile=1)
    client.close()
    others.close()


def explicit(client: Client, profile: int, count: int = 4) -> list[tuple[int, int]]:
    """Configure a profile and return its EVs, value and port."""
    client.ask("modify_ev_profile", profile=profile, mask=FREE, profile_state=OFFLINE, ev_mode=EXPLICIT, ev_count=count)
    evs = [((0xA000 + number) << 16, 1 + number % 2) for number in range(count)]
    for value, port in evs:
        client.ask("replace_ev", profile=profile, new_value=value, new_port=port)
    mask = P.STATE | P.MIN_ACTIVE | P.EVENT_MASK
    client.ask("modify_ev_profile", profile=profile, mask=mask, profile_state=ONLINE, ev_min_active=1, ev_event_mask=3)
    return evs


def test_an_explicit_profile_from_its_first_ev_to_its_queue_pairs(hosts: Hosts, ends: tuple[Client, Client]) -> None:
    client = ends[0]
    evs = explicit(client, 3)
    found = client.ask("query_ev_profile", profile=3)
    assert (found["profile_state"], found["ev_mode"], found["entries"]) == (ONLINE, EXPLICIT, 4)
    assert client.ask("query_ev", profile=3, index=1) == {"value": evs[1][0], "port": 2, "ev_state": EvState.UNKNOWN}
    refusal(errno.ENOENT, client, "modify_ev_state", profile=3, value=evs[0][0], port=1, ev_state=EvState.DENIED)
    a, b = Pair(client), Pair(ends[1])
    a.modify(State.INIT, TO_INIT, access=2, mrc_mask=M.EV_PROFILE_ID, ev_profile=3)
    a.modify(State.INIT, Attribute.STATE)
    gids = [0xFFFF << 32 | int.from_bytes(socket.inet_aton(address(host, 0))) for host in range(2)]
    for pair, peer, gid in ((a, b, gids[1]), (b, a, gids[0])):
        if pair is b:
            pair.modify(State.INIT, TO_INIT, access=2)
        way = {"is_global": 1, "gid_low": gid, "address_port": 1}
        pair.modify(State.RTR, TO_RTR, path_mtu=3, remote_number=peer.number, **way)
        pair.modify(State.RTS, TO_RTS)
    a.write(WRITE, ends[1], 5000)
    assert client.completions(1)[0]["status"] == SUCCESS
    values = {each.value for each in hosts.hosts[0].operated_evs().evs()}
    assert values == {value for value, _ in evs}
    for state in (EvState.DENIED, EvState.GOOD):
        client.ask("modify_ev_state", profile=3, value=evs[0][0], port=1, ev_state=state)
        assert client.ask("query_ev_state", profile=3, value=evs[0][0], port=1)["ev_state"] == state
    refusal(errno.EINVAL, client, "modify_ev_state", profile=3, value=evs[0][0], port=1, ev_state=EvState.ASSUMED_BAD)
    refusal(errno.ENOENT, client, "query_ev_state", profile=3, value=evs[0][0], port=2)
    refusal(errno.EBUSY, client, "modify_ev_profile", profile=3, mask=P.STATE, profile_state=OFFLINE)
    client.ask("destroy_queue_pair", queue_pair=a.made["queue_pair"])
    client.ask("modify_ev_profile", profile=3, mask=P.STATE, profile_state=OFFLINE)
    client.ask("modify_ev_profile", profile=3, mask=P.STATE, profile_state=0)
    assert client.ask("query_ev_profile", profile=3)["profile_state"] == 0


def test_profiles_and_evs_that_cannot_be(ends: tuple[Client, Client]) -> None:
    client = ends[0]
    way = {"profile": 4, "profile_state": OFFLINE}
    for error, fields in (
        (errno.EOPNOTSUPP, {"mask": FREE, "ev_mode": GENERATED, "ev_count": 4}),
        (errno.EINVAL, {"mask": P.STATE}),  # lacks mode and count
        (errno.EINVAL, {"mask": FREE, "ev_mode": AUTO, "ev_count": 1}),  # less than the planes
        (errno.EINVAL, {"mask": FREE, "ev_mode": AUTO, "ev_count": 2**64 - 1}),
        (errno.EINVAL, {"mask": FREE | P.FMT_ID, "ev_mode": AUTO, "ev_count": 4, "ev_format": 1}),
        (errno.EINVAL, {"mask": FREE | P.EVENT_MASK, "ev_mode": AUTO, "ev_count": 4, "ev_event_mask": 4}),
        (errno.EINVAL, {"mask": FREE | 1 << 20, "ev_mode": AUTO, "ev_count": 4}),
    ):
        refusal(error, client, "modify_ev_profile", **way, **fields)
    refusal(errno.EINVAL, client, "modify_ev_profile", profile=0, mask=P.COUNT, ev_count=4)  # the scenario's
    refusal(errno.EINVAL, client, "replace_ev", profile=4, new_value=1 << 16, new_port=1)  # it is in init
    client.ask("modify_ev_profile", **way, mask=FREE, ev_mode=EXPLICIT, ev_count=4)
    for fields in ({"new_value": 1 << 16, "new_port": 3}, {"new_value": 1 << 32, "new_port": 1}, {"new_port": 1}):
        refusal(errno.EINVAL, client, "replace_ev", profile=4, **fields)
    refusal(errno.ENOENT, client, "replace_ev", profile=4, value=1 << 16, port=1, new_value=2 << 16, new_port=1)
    client.ask("replace_ev", profile=4, new_value=1 << 16, new_port=1, all_copies=1)
    rest = {"mask": P.STATE | P.MIN_ACTIVE | P.EVENT_MASK, "profile_state": ONLINE, "ev_min_active": 1}
    refusal(errno.EINVAL, client, "modify_ev_profile", profile=4, **rest)  # all of its EVs are alike
    refusal(errno.EINVAL, client, "query_ev", profile=4, index=4)


def test_evs_and_ports_are_root_s_to_control(hosts: Hosts) -> None:
    client = Client(hosts, 0, uid=1000)
    assert client.ask("query_ev_limits")["ev_alignment"] == 2
    for name in ("query_ev_profile", "modify_ev_profile", "replace_ev", "query_ev", "modify_ev_state"):
        refusal(errno.EPERM, client, name, profile=1)
    for name in ("query_ev_state", "take_ev_event", "query_port_admin", "modify_port_admin"):
        refusal(errno.EPERM, client, name)
    client.close()


@pytest.mark.parametrize("seed", range(3))
def test_values_that_cannot_be_get_an_errno_and_leave_the_nic_in_order(
    hosts: Hosts, ends: tuple[Client, Client], seed: int
) -> None:
    """Requests of any order and any values, to one NIC."""
    client = Client(hosts, 0)
    chosen = random.Random(seed)
    values = [0, 1, 2, 3, 4, 7, 16, 128, 129, 1 << 16, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]
    pairs = [Pair(client) for _ in range(3)]
    kinds = [kind for kind in KINDS if kind.name not in ("open", "create_queue_pair", "destroy_queue_pair")]
    refused = 0
    for _ in range(1500):
        kind = chosen.choice(kinds)
        fields = {field: chosen.choice(values) for field in kind.question if field != "none"}
        if kind.name == "modify_queue_pair":
            likely = [(State.INIT, TO_INIT), (State.RTR, TO_RTR), (State.RTS, TO_RTS), (State.RESET, Attribute.STATE)]
            fields["state"], fields["mask"] = map(int, chosen.choice(likely))
            fields["queue_pair"] = chosen.choice(pairs).made["queue_pair"]
            fields |= {"mrc_mask": chosen.choice([0, 1, 4, 32, 255, 1 << 9]), "path_mtu": 3, "is_global": 1}
        try:
            client.ask(kind.name, **fields)
        except (OSError, TypeError, ValueError, OverflowError):  # what the socket answers with an errno
            refused += 1
    assert refused > 500
    client.close()
    for port in (1, 2):
        ends[0].ask("modify_port_admin", port=port, is_enabled=1)
    a, _ = connected(ends)
    a.write(WRITE, ends[1], 5000)
    assert ends[0].completions(1)[0]["status"] == SUCCESS
