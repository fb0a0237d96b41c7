"""A host's /dev/infiniband/rdma_cm as librdmacm writes to it, byte by byte."""

from __future__ import annotations

import errno
import struct
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verbs import ucma_bytes as ucma
from tests.verbs.cm_ends import ADDRESSES, GUIDS, cm_hosts, gid_of, other
from tests.verbs.ucma_bytes import EventBytes

PORT = 7471


class Hosts:
    """Two hosts whose messages arrive at once."""

    def __init__(self) -> None:
        self.hosts = cm_hosts()

    def deliver(self) -> None:
        busy = True
        while busy:
            busy = False
            for name, host in self.hosts.items():
                for port, local, remote, mad in host.take_outgoing():
                    busy = True
                    self.hosts[other(name)].receive(port, remote, local, mad)


class Program:
    """A client of a host's."""

    def __init__(self, hosts: Hosts, name: str, is_datagram: bool = False) -> None:
        self.hosts, self.host = hosts, hosts.hosts[name]
        self.client = self.host.open()
        self.is_datagram = is_datagram

    def ask(self, command: bytes, option: bytes = b"", source: int | None = None) -> bytes:
        """Return an answer. Raises OSError as write() would."""
        error, answer, _ = self.host.command(self.client, command, option, source)
        self.hosts.deliver()
        if error:
            raise OSError(error, errno.errorcode[error])
        return answer

    def new_id(self, uid: int = 1, space: int = ucma.PS_TCP) -> int:
        return int(struct.unpack("=I", self.ask(ucma.create_id(uid, space)))[0])

    def event(self) -> EventBytes:
        return EventBytes.read(self.ask(ucma.get_event()), self.is_datagram)

    def refused(self, command: bytes, option: bytes = b"") -> str:
        """Return the name of the errno that a command is answered with."""
        error, answer, _ = self.host.command(self.client, command, option)
        assert answer == b""
        return errno.errorcode.get(error, "none")


def resolved(program: Program, address: str = "10.0.0.2", space: int = ucma.PS_TCP) -> int:
    number = program.new_id(uid=0xA, space=space)
    program.ask(ucma.resolve_addr(number, address, PORT))
    assert program.event().name == "ADDR_RESOLVED"
    program.ask(ucma.resolve_route(number))
    assert program.event().name == "ROUTE_RESOLVED"
    return number


def listening(program: Program, address: str = "0.0.0.0", space: int = ucma.PS_TCP, backlog: int = 0) -> int:
    number = program.new_id(uid=0xB, space=space)
    program.ask(ucma.bind(number, address, PORT))
    program.ask(ucma.listen(number, backlog))
    return number


def attributes(program: Program, number: int, state: int) -> dict[str, int]:
    answer = program.ask(ucma.init_qp_attr(number, state))
    names = ("mask", "state", "current", "mtu", "migration", "qkey", "rq_psn", "sq_psn", "dest_qpn", "access")
    found = dict(zip(names, struct.unpack_from("=10I", answer), strict=True))
    found |= {"sgid_index": answer[60], "hop_limit": answer[61], "is_global": answer[69], "port": answer[129]}
    return found


@pytest.mark.parametrize("version", [0, 1])
def test_a_connection_is_made_and_ended(version: int) -> None:
    hosts = Hosts()
    a, b = Program(hosts, "a"), Program(hosts, "b")
    own, peer = ADDRESSES["a"][version], ADDRESSES["b"][version]
    listener = listening(b, "::" if version else "0.0.0.0")
    number = resolved(a, peer)
    a.ask(ucma.connect(number, 0x123, b"hello"))

    request = b.event()
    assert (request.uid, request.name, request.qpn) == (0xB, "CONNECT_REQUEST", 0x123)
    assert request.private_data == b"hello".ljust(56, b"\0")
    assert request.id not in (listener, number)
    addresses = b.ask(ucma.query(request.id, 0))
    assert addresses[16 : 16 + ucma.size_of(peer)] == ucma.address(peer, PORT)[: ucma.size_of(peer)]
    assert addresses[144 + 4 : 144 + 8] == ucma.address(own)[4:8]

    ready = attributes(b, request.id, 2)
    assert ready["dest_qpn"] == 0x123
    b.ask(ucma.accept(request.id, 0x456, uid=0xC, private_data=b"welcome"))
    response = a.event()
    assert (response.name, response.qpn, response.private_data[:8]) == ("CONNECT_RESPONSE", 0x456, b"welcome\0")
    assert attributes(a, number, 2)["dest_qpn"] == 0x456
    # What one sends first is what the other expects first.
    assert attributes(a, number, 3)["sq_psn"] == ready["rq_psn"]
    assert attributes(b, request.id, 3)["sq_psn"] == attributes(a, number, 2)["rq_psn"]
    a.ask(ucma.accept(number, 0, valid=0))
    established = b.event()
    assert (established.uid, established.id, established.name) == (0xC, request.id, "ESTABLISHED")

    b.ask(ucma.disconnect(request.id))
    assert a.event().name == "DISCONNECTED"
    a.ask(ucma.disconnect(number))
    assert b.event().name == "DISCONNECTED"
    for program in (a, b):
        assert program.refused(ucma.get_event()) == "EAGAIN"
        deadline = program.host.next_deadline_ps
        assert deadline is not None
        program.host.now_ps = deadline
        program.host.advance()
        assert program.event().name == "TIMEWAIT_EXIT"
        program.host.close(program.client)
        assert (program.host.ids, program.host.connections) == (0, 0)


def test_older_commands_do_the_same() -> None:
    hosts = Hosts()
    a, b = Program(hosts, "a"), Program(hosts, "b")
    listener = b.new_id()
    b.ask(ucma.bind_ip(listener, "10.0.0.2", PORT))
    b.ask(ucma.listen(listener))
    number = a.new_id()
    a.ask(ucma.resolve_ip(number, "10.0.0.2", PORT))
    assert a.event().name == "ADDR_RESOLVED"
    route = a.ask(ucma.query_route(number))
    assert struct.unpack_from(">Q", route)[0] == GUIDS["a"]
    assert route[8:24] == gid_of("10.0.0.2")
    assert route[24:40] == gid_of("10.0.0.1")
    a.ask(ucma.resolve_route(number))
    assert a.event().name == "ROUTE_RESOLVED"
    a.ask(ucma.connect(number, 1))
    assert b.event().name == "CONNECT_REQUEST"


def test_a_path_is_told_as_a_record() -> None:
    hosts = Hosts()
    a = Program(hosts, "a")
    number = resolved(a)
    answer = a.ask(ucma.query(number, 1, 8 + 6 * 72))
    count, _, flags = struct.unpack_from("=III", answer)
    assert (count, flags, len(answer)) == (1, 1 | 2 | 8 | 32, 80)
    record = answer[16:]
    assert (record[8:24], record[24:40]) == (gid_of("10.0.0.2"), gid_of("10.0.0.1"))
    assert record[47] == 64  # hop limit
    assert record[54] & 0x3F == 3  # MTU
    # Only the head fits here.
    assert len(a.ask(ucma.query(number, 1, 80))) == 8


def test_a_program_is_refused() -> None:
    hosts = Hosts()
    a, b = Program(hosts, "a"), Program(hosts, "b")
    listening(b)
    number = resolved(a)
    a.ask(ucma.connect(number, 1))
    request = b.event()
    b.ask(ucma.reject(request.id, b"no"))
    refusal = a.event()
    assert (refusal.name, refusal.status, refusal.private_data[:3]) == ("REJECTED", 28, b"no\0")
    assert b.refused(ucma.reject(request.id)) == "EINVAL"


def test_nobody_listens() -> None:
    hosts = Hosts()
    a = Program(hosts, "a")
    number = resolved(a)
    a.ask(ucma.connect(number, 1))
    refusal = a.event()
    assert (refusal.name, refusal.status) == ("REJECTED", 8)


def test_a_listener_hears_what_is_for_its_address() -> None:
    hosts = Hosts()
    a, b = Program(hosts, "a"), Program(hosts, "b")
    listening(b, "fd00::2")
    number = resolved(a, "10.0.0.2")
    a.ask(ucma.connect(number, 1))
    assert a.event().name == "REJECTED"
    number = resolved(a, "fd00::2")
    a.ask(ucma.connect(number, 1))
    assert b.event().name == "CONNECT_REQUEST"


def test_an_ipv6_wildcard_hears_ipv4_unless_it_is_told_not_to() -> None:
    for only, expected in ((0, True), (1, False)):
        hosts = Hosts()
        a, b = Program(hosts, "a"), Program(hosts, "b")
        listener = b.new_id()
        b.ask(ucma.set_option(listener, 0, 2, 4), struct.pack("=i", only))
        b.ask(ucma.bind(listener, "::", PORT))
        b.ask(ucma.listen(listener))
        number = resolved(a)
        a.ask(ucma.connect(number, 1))
        assert b.host.has_events(b.client) is expected


def test_the_backlog_holds_requests_back() -> None:
    """Those beyond it are neither refused nor lost: they come again."""
    hosts = Hosts()
    a, b = Program(hosts, "a"), Program(hosts, "b")
    listening(b, backlog=1)
    numbers = [resolved(a), resolved(a)]
    for number, qpn in zip(numbers, (0x11, 0x12), strict=True):
        a.ask(ucma.connect(number, qpn))
    assert b.event().qpn == 0x11
    assert b.refused(ucma.get_event()) == "EAGAIN"
    assert b.host.counters["forgotten_requests"] == 1
    deadline = a.host.next_deadline_ps
    assert deadline is not None
    for host in hosts.hosts.values():
        host.now_ps = deadline
    a.host.advance()
    hosts.deliver()
    assert b.event().qpn == 0x12


def test_a_host_connects_to_itself() -> None:
    hosts = Hosts()
    for qpn, destination in ((10, "10.0.0.1"), (20, "127.0.0.1")):
        a = Program(hosts, "a")
        server = Program(hosts, "a")
        listener = listening(server)
        number = resolved(a, destination)
        a.ask(ucma.connect(number, qpn))
        request = server.event()
        server.ask(ucma.accept(request.id, qpn + 1, uid=3))
        assert a.event().name == "CONNECT_RESPONSE"
        a.ask(ucma.accept(number, 0, valid=0))
        assert server.event().name == "ESTABLISHED"
        assert hosts.hosts["a"].take_outgoing() == []
        server.ask(ucma.destroy_id(listener))


def test_unreachable_addresses_are_said_so() -> None:
    hosts = Hosts()
    a = Program(hosts, "a")
    number = a.new_id()
    a.ask(ucma.resolve_addr(number, "10.9.9.9", PORT))
    event = a.event()
    assert (event.name, event.status) == ("ADDR_ERROR", -errno.ENETUNREACH)
    a.ask(ucma.resolve_addr(number, "10.0.0.2", PORT))
    assert a.event().name == "ADDR_RESOLVED"


def test_datagrams_find_their_service() -> None:
    hosts = Hosts()
    a, b = Program(hosts, "a", is_datagram=True), Program(hosts, "b", is_datagram=True)
    listening(b, space=ucma.PS_UDP)
    number = resolved(a, space=ucma.PS_UDP)
    assert attributes(a, number, 1)["qkey"] == 0x01234567
    a.ask(ucma.connect(number, 0, b"who?"))
    request = b.event()
    assert (request.name, request.private_data[:5]) == ("CONNECT_REQUEST", b"who?\0")
    b.ask(ucma.accept(request.id, 0x77, uid=3, private_data=b"me"))
    event = EventBytes.read(answer := a.ask(ucma.get_event()), is_datagram=True)
    assert (event.name, event.qpn, event.qkey, event.private_data[:3]) == ("ESTABLISHED", 0x77, 0x01234567, b"me\0")
    # The address handle of the service.
    assert answer[28:44] == gid_of("10.0.0.2")


def test_a_datagram_service_refuses() -> None:
    hosts = Hosts()
    a, b = Program(hosts, "a", is_datagram=True), Program(hosts, "b", is_datagram=True)
    listening(b, space=ucma.PS_UDP)
    number = resolved(a, space=ucma.PS_UDP)
    a.ask(ucma.connect(number, 0))
    b.ask(ucma.reject(b.event().id, b"no"))
    event = a.event()
    assert (event.name, event.status) == ("UNREACHABLE", 2)


def test_multicast_groups_are_joined_and_left() -> None:
    hosts = Hosts()
    a = Program(hosts, "a", is_datagram=True)
    number = a.new_id(space=ucma.PS_UDP)
    a.ask(ucma.bind(number, "10.0.0.1"))
    (group,) = struct.unpack("=I", a.ask(ucma.join(number, "239.1.2.3", uid=0x99)))
    answer = a.ask(ucma.get_event())
    event = EventBytes.read(answer, is_datagram=True)
    assert (event.uid, event.id, event.name) == (0x99, group, "MULTICAST_JOIN")
    assert (event.qpn, event.qkey, event.group) == (0xFFFFFF, 0x01234567, gid_of("239.1.2.3"))
    assert a.host.take_groups() == [(True, 1, gid_of("239.1.2.3"))]
    assert struct.unpack("=I", a.ask(ucma.leave(group))) == (1,)
    assert a.host.take_groups() == [(False, 1, gid_of("239.1.2.3"))]
    assert a.refused(ucma.leave(group)) == "ENOENT"
    assert a.refused(ucma.join(number, "ff0e::1")) == "ENOTSUP"
    assert a.refused(ucma.join(number, "10.0.0.2")) == "EINVAL"
    a.ask(ucma.join(number, "239.1.2.3"))
    a.ask(ucma.join(number, "239.1.2.4", flags=1))  # sends only
    a.host.take_groups()
    a.host.close(a.client)
    assert a.host.take_groups() == [(False, 1, gid_of("239.1.2.3"))]


def test_ids_migrate_with_their_events() -> None:
    hosts = Hosts()
    a, other = Program(hosts, "a"), Program(hosts, "a")
    number = a.new_id()
    a.ask(ucma.resolve_addr(number, "10.0.0.2", PORT))
    assert other.refused(ucma.migrate_id(number, 0)) == "EINVAL"  # no descriptor of the device's
    assert struct.unpack("=I", other.ask(ucma.migrate_id(number, 0), source=a.client)) == (0,)
    assert other.event().name == "ADDR_RESOLVED"
    assert a.refused(ucma.get_event()) == "EAGAIN"
    assert a.refused(ucma.resolve_route(number)) == "EINVAL"
    other.ask(ucma.resolve_route(number))
    a.host.close(a.client)
    assert other.event().name == "ROUTE_RESOLVED"


def test_clients_do_not_see_each_other() -> None:
    hosts = Hosts()
    a, other = Program(hosts, "a"), Program(hosts, "a")
    number = resolved(a)
    listener = listening(a)
    for command in (
        ucma.destroy_id(number),
        ucma.bind(number, "10.0.0.1"),
        ucma.query(number, 0),
        ucma.query_route(number),
        ucma.listen(listener),
        ucma.set_option(number, 0, 0, 1),
    ):
        option = b"\1" if command == ucma.set_option(number, 0, 0, 1) else b""
        assert other.refused(command, option) == "ENOENT"
    for command in (ucma.connect(number, 1), ucma.disconnect(number), ucma.init_qp_attr(number, 1)):
        assert other.refused(command) == "EINVAL"
    other.host.close(other.client)
    a.ask(ucma.connect(number, 1))
    assert a.host.ids == 2


def test_ports_are_shared_out() -> None:
    hosts = Hosts()
    a, other = Program(hosts, "a"), Program(hosts, "a")
    listening(a, "10.0.0.1")
    number = other.new_id()
    assert other.refused(ucma.bind(number, "10.0.0.1", PORT)) == "EADDRINUSE"
    assert other.refused(ucma.bind(number, "0.0.0.0", PORT)) == "EADDRNOTAVAIL"
    assert other.refused(ucma.bind(number, "10.7.7.7")) == "EADDRNOTAVAIL"
    other.ask(ucma.bind(number, "10.0.0.1", 0))
    (port,) = struct.unpack_from(">H", other.ask(ucma.query(number, 0)), 18)
    assert 32768 <= port <= 60999
    # The spaces are apart, and a port is free once its owner has gone.
    datagrams = other.new_id(space=ucma.PS_UDP)
    other.ask(ucma.bind(datagrams, "10.0.0.1", PORT))
    a.host.close(a.client)
    again = other.new_id()
    other.ask(ucma.bind(again, "10.0.0.1", PORT))


def test_addresses_of_infiniband_are_bound_but_lead_nowhere() -> None:
    """librdmacm asks so whether they are known; a RoCE device has none."""
    hosts = Hosts()
    a = Program(hosts, "a")
    number = a.new_id(space=ucma.PS_IB)
    wildcard = (
        struct.pack("=HHI16s", 27, 0, 0, bytes(16)) + struct.pack(">QQ", 0x01060000, 0xFFFFFFFFFFFF0000) + bytes(8)
    )
    assert len(wildcard) == 48
    bound = struct.pack("=IHH", number, 48, 0) + wildcard.ljust(128, b"\0")
    a.ask(ucma.command("BIND", bound))
    there = struct.pack("=IIHHI", number, 2000, 0, 48, 0) + bytes(128) + wildcard.ljust(128, b"\0")
    assert a.refused(ucma.command("RESOLVE_ADDR", there)) == "ENODEV"


@pytest.mark.parametrize(
    ("space", "qp_type", "error"),
    [(ucma.PS_IPOIB, 4, "EPROTONOSUPPORT"), (ucma.PS_IB, 9, "ENOTSUP"), (0x999, 2, "EINVAL")],
)
def test_what_is_not_there_is_refused(space: int, qp_type: int, error: str) -> None:
    assert Program(Hosts(), "a").refused(ucma.create_id(1, space, qp_type)) == error


def test_options_are_checked() -> None:
    hosts = Hosts()
    a = Program(hosts, "a")
    number = a.new_id()
    a.ask(ucma.set_option(number, 0, 0, 1), b"\x10")
    a.ask(ucma.set_option(number, 0, 3, 1), b"\x0e")
    for name, option, error in ((0, b"", "EINVAL"), (1, b"\1", "EINVAL"), (3, b"\x40", "EINVAL"), (7, b"", "ENOSYS")):
        assert a.refused(ucma.set_option(number, 0, name, len(option)), option) == error
    assert a.refused(ucma.set_option(number, 5, 0, 0)) == "ENOSYS"
    assert a.refused(ucma.set_option(number, 0, 0, 1)) == "EINVAL"  # the option has not come
    assert a.refused(ucma.command("GET_OPTION", bytes(32))) == "ENOSYS"
    a.ask(ucma.resolve_addr(number, "10.0.0.2", PORT))
    a.ask(ucma.resolve_route(number))
    record = a.ask(ucma.query(number, 1, 8 + 6 * 72))[16:]
    assert (record[48], record[56] & 0x3F) == (0x10, 13)  # traffic class, and half of the ACK timeout


def test_commands_in_the_wrong_state_are_refused() -> None:
    hosts = Hosts()
    a = Program(hosts, "a")
    number = a.new_id()
    for command in (
        ucma.resolve_route(number),
        ucma.connect(number, 1),
        ucma.accept(number, 1),
        ucma.reject(number),
        ucma.disconnect(number),
        ucma.init_qp_attr(number, 1),
        ucma.notify(number),
    ):
        assert a.refused(command) == "EINVAL"
    number = resolved(a)
    assert a.refused(ucma.resolve_addr(number, "10.0.0.2")) == "EINVAL"
    assert a.refused(ucma.bind(number, "10.0.0.1")) == "EINVAL"
    assert a.refused(ucma.listen(number)) == "EINVAL"
    assert a.refused(ucma.connect(number, 1, bytes(57))) == "EINVAL"
    assert a.refused(ucma.init_qp_attr(number, 7)) == "EINVAL"
    assert a.refused(ucma.query(number, 3)) == "ENOSYS"
    assert a.refused(ucma.query(number, 0, 8)) == "ENOSPC"
    assert a.refused(ucma.command("GET_EVENT", bytes(8), 100)) == "ENOSPC"
    a.ask(ucma.connect(number, 1))
    assert a.refused(ucma.connect(number, 1)) == "EINVAL"


def test_a_listener_takes_its_requests_with_it() -> None:
    hosts = Hosts()
    a, b = Program(hosts, "a"), Program(hosts, "b")
    listener = listening(b)
    number = resolved(a)
    a.ask(ucma.connect(number, 1))
    assert b.host.ids == 2
    assert struct.unpack("=I", b.ask(ucma.destroy_id(listener))) == (0,)
    assert (b.host.ids, a.event().name) == (0, "REJECTED")


@pytest.mark.parametrize("name", ucma.COMMANDS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_command_of_a_client_does_harm(name: str, data: st.DataObject) -> None:
    """Bodies of any length with any bytes, often with an ID that is there; another client goes on undisturbed."""
    hosts = Hosts()
    a, victim = Program(hosts, "a"), Program(hosts, "a")
    theirs = resolved(victim)
    own = resolved(a)
    b = Program(hosts, "b")
    listening(b)
    body = bytearray(data.draw(st.binary(max_size=340)))
    for at in (0, 8, 16, 36, 60, 272, 280):
        if len(body) >= at + 4 and data.draw(st.booleans()):
            struct.pack_into("=I", body, at, data.draw(st.sampled_from((own, theirs, 99))))
    room = data.draw(st.sampled_from((0, 4, 144, 336, 65535)))
    option = data.draw(st.binary(max_size=160))
    for _ in range(2):
        error, answer, _ = a.host.command(a.client, ucma.command(name, bytes(body), room), option)
        hosts.deliver()
        assert len(answer) <= room
        assert error == 0 or (answer == b"" and error in errno.errorcode)
    short = ucma.command(name, bytes(body), room)[: data.draw(st.integers(0, 12))]
    a.host.command(a.client, short)
    victim.ask(ucma.connect(theirs, 1))
    a.host.close(a.client)
    victim.host.close(victim.client)
    assert a.host.ids == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32))
def test_any_order_of_commands_leaves_nothing_behind(seed: int) -> None:
    random = Random(seed)
    hosts = Hosts()
    programs = [Program(hosts, name) for name in "aabb"]
    ids: list[int] = []
    makers = (
        lambda number: ucma.create_id(random.randint(1, 9), random.choice((ucma.PS_TCP, ucma.PS_UDP)), 2),
        ucma.destroy_id,
        lambda number: ucma.bind(
            number, random.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2", "::")), random.choice((0, 8))
        ),
        lambda number: ucma.resolve_addr(number, random.choice(("10.0.0.1", "10.0.0.2", "fd00::2")), 8),
        ucma.resolve_route,
        ucma.listen,
        lambda number: ucma.connect(number, 5),
        lambda number: ucma.accept(number, 6, uid=2, valid=random.randint(0, 1)),
        ucma.reject,
        ucma.disconnect,
        lambda number: ucma.get_event(),
        lambda number: ucma.init_qp_attr(number, random.randint(0, 6)),
        lambda number: ucma.join(number, "239.0.0.1"),
        ucma.notify,
    )
    for _ in range(150):
        program = random.choice(programs)
        command = random.choice(makers)(random.choice(ids or [0]))
        error, answer, _ = program.host.command(program.client, command)
        hosts.deliver()
        if error == 0 and command[0] == 0:
            ids.append(struct.unpack("=I", answer)[0])
        if error == 0 and command[0] == ucma.COMMANDS.index("GET_EVENT"):
            ids.append(EventBytes.read(answer).id)
        if random.random() < 0.05 and (deadline := program.host.next_deadline_ps) is not None:
            program.host.now_ps = deadline
            program.host.advance()
            hosts.deliver()
    for program in programs:
        program.host.close(program.client)
        hosts.deliver()
    for host in hosts.hosts.values():
        assert host.ids == 0
        while (deadline := host.next_deadline_ps) is not None:
            host.now_ps = deadline
            host.advance()
            hosts.deliver()
        assert host.connections == 0
