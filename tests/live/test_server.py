"""Who gets the page, and what a client can do to the lab that serves it: nothing but read, and not for long."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.errors import CheckFailedError, EnvironmentLacksError
from weft.live import Place
from weft.live.contents import Contents
from weft.live.server import MOST_CONNECTIONS, LivePageServer
from weft.live.view import LiveView
from weft.metrics import families_of
from weft.metrics.server import Answer, LabServer, Request
from weft.topologies import leaf_spine

FABRIC = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)


def gone(switch: str, action: object) -> object:
    raise CheckFailedError("the switch daemon is gone")


@pytest.fixture(scope="module")
def server() -> Iterator[LivePageServer]:
    """A page of a lab that has never sent anything."""
    lab = Mock(fabric=FABRIC, switch_stats=lambda: None, controller_stays=True)
    lab.options.dilation = 1.0
    lab.links_down.return_value = frozenset()
    lab.operations.log = Mock(dropped=0, __iter__=lambda _: iter([]))
    view = LiveView(lab, lambda: families_of(FABRIC, 1.0, None, {}), Contents(gone))  # type: ignore[arg-type]
    view.sample()
    with LivePageServer(Place(port=0), view, "a lab") as running:
        yield running


def token_of(server: LivePageServer) -> str:
    return parse_qs(urlsplit(server.url).query)["token"][0]


def ask(server: LabServer, target: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(*server.place, timeout=10)
    with contextlib.closing(connection):
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        return (
            answer.status,
            {name.lower(): value for name, value in answer.headers.items()},
            answer.read().decode(),
        )


def test_the_page_is_at_the_address_that_is_printed(server: LivePageServer) -> None:
    parts = urlsplit(server.url)
    assert (parts.hostname, parts.path) == ("127.0.0.1", "/")
    status, headers, page = ask(server, f"/?{parts.query}")
    assert status == 200
    assert "<h1>a lab" in page
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    # Nothing is loaded from elsewhere, and no one else's nonce is known beforehand.
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page
    assert ask(server, f"/?{parts.query}")[1]["content-security-policy"] != policy


@pytest.mark.parametrize("path", ["/", "/state", "/history", "/contents", "/rows", "/metrics", "/../etc/passwd"])
def test_nothing_is_there_without_the_token(server: LivePageServer, path: str) -> None:
    token = token_of(server)
    for target, headers in (
        (path, {}),
        (f"{path}?token=", {}),
        (f"{path}?token={token[:-1]}", {}),
        (f"{path}?token=%00%ff", {}),
        (path, {"Authorization": f"Bearer {token}x"}),
        (f"{path}?token={token}", {"Authorization": "Bearer wrong"}),
    ):
        status, _, said = ask(server, target, **headers)
        assert status == 403, target
        assert token not in said


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:8080", 200), ("127.0.0.1:1", 200), ("[::1]:9465", 200), ("10.0.0.7", 200),
        ("attacker.example", 403), ("attacker.example:9465", 403), ("localhost.attacker.example", 403),
        ("127.0.0.1.attacker.example", 403), ("[::1].attacker.example", 403), ("", 403), ("[", 403),
    ],
)  # fmt: skip
def test_names_that_another_site_can_have_are_refused(server: LivePageServer, host: str, status: int) -> None:
    """DNS rebinding makes another site's scripts of the page's own origin."""
    found, _, _ = ask(server, f"/state?token={token_of(server)}", Host=host)
    assert found == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_nothing_can_be_changed(server: LivePageServer, method: str) -> None:
    assert ask(server, f"/state?token={token_of(server)}", method)[0] == 501


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/nothing", 404, "valid: /, /state, /history, /contents, /rows"),
        ("/state?after=-1", 400, "after='-1' is not the number of an event"),
        ("/state?after=%D9%A3", 400, "is not the number of an event"),
        ("/state?after=99999999999999999999", 400, "is not the number"),
        ("/history?ports=p9:1", 400, "no switch has the port 'p9:1'"),
        ("/history?ports=" + ",".join(["p0l0:1"] * 9), 400, r"9 ports (valid: at most 8)"),
        ("/contents?switch=p0l0", 503, "the switch daemon is gone"),
        ("/rows?switch=p0l0&kind=tables&name=acl", 503, "the switch daemon is gone"),
        ("/state?" + "&".join(f"x{number}=1" for number in range(40)), 400, "the address is invalid"),
        ("/state?[", 200, ""),
        ("//[/state", 404, "nothing is there"),
    ],
)
def test_a_bad_question_gets_a_clear_answer(server: LivePageServer, path: str, status: int, message: str) -> None:
    found, headers, said = ask(server, path, Authorization=f"Bearer {token_of(server)}")
    assert found == status
    assert message in said
    assert headers["x-content-type-options"] == "nosniff"


@given(
    st.text(st.characters(codec="latin-1", exclude_characters="\r\n")),
    st.text(st.characters(codec="latin-1", exclude_characters="\r\n")),
    st.text(),
)
def test_no_request_without_the_token_is_answered(host: str, said: str, target: str) -> None:
    lab = Mock(fabric=FABRIC, switch_stats=lambda: None)
    page = LivePageServer.__new__(LivePageServer)
    page._token, page._view = "secret", lab  # no socket for each example
    answer = page.answer(Request(target, {"host": host, "authorization": said}))
    assert answer.status in (400, 403)


def test_the_state_is_json_and_says_what_is_unknown(server: LivePageServer) -> None:
    status, headers, body = ask(server, "/state", Authorization=f"Bearer {token_of(server)}")
    assert (status, headers["content-type"]) == (200, "application/json")
    state = json.loads(body)
    assert state["emulated_s"] is None
    assert state["events"] == []


def test_who_never_ends_a_request_keeps_nobody_waiting_nor_the_lab_from_its_end() -> None:
    began, go_on = threading.Event(), threading.Event()

    def answer(request: Request) -> Answer:
        if request.target == "/slow":
            began.set()
            go_on.wait(60)
        return Answer("here")

    with contextlib.ExitStack() as clients:
        with LabServer(("127.0.0.1", 0), "--web", answer, MOST_CONNECTIONS) as running:
            idle = [
                clients.enter_context(socket.create_connection(running.place, timeout=60))
                for _ in range(MOST_CONNECTIONS - 2)
            ]
            slow = clients.enter_context(socket.create_connection(running.place, timeout=60))
            slow.sendall(b"GET /slow HTTP/1.0\r\n\r\n")
            assert began.wait(60)
            assert ask(running, "/")[2] == "here"  # one connection is left, for all who behave
            # All connections are taken, one more waits; the lab ends.
            more = [clients.enter_context(socket.create_connection(running.place, timeout=60)) for _ in range(3)]
            go_on.set()
        for client in (*idle, *more):
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(running.place, timeout=10)


def test_more_than_the_most_connections_start_no_more_threads() -> None:
    before = set(threading.enumerate())
    with (
        contextlib.ExitStack() as clients,
        LabServer(("127.0.0.1", 0), "--web", lambda _: Answer(""), 2) as running,
    ):
        for _ in range(8):
            clients.enter_context(socket.create_connection(running.place, timeout=60))
        begun = set(threading.enumerate()) - before
        assert sum("_serve" in thread.name for thread in begun) <= 2


def test_a_taken_port_and_another_machines_address_are_refused() -> None:
    with LabServer(("127.0.0.1", 0), "--web", lambda _: Answer("")) as running:
        port = running.place[1]
        with refused(EnvironmentLacksError, problem=f"--web {port}: 127.0.0.1:{port}: Address already in use"):
            LabServer(("127.0.0.1", port), "--web", lambda _: Answer(""))
    with refused(EnvironmentLacksError, problem="Cannot assign requested address"):
        LabServer(("192.0.2.1", 0), "--web", lambda _: Answer(""))


def test_ipv6_is_served_too() -> None:
    try:
        running = LabServer(("::1", 0), "--web", lambda _: Answer("here"))
    except EnvironmentLacksError as error:
        pytest.skip(str(error))
    with running:
        assert running.base_url.startswith("http://[::1]:")
        assert ask(running, "/")[2] == "here"
