"""A client that watches switches' ports receives their state and every change until it disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from tests.refusals import refused
from weft.controller.errors import RequestRefusedError, SwitchUnavailableError
from weft.controller.grpc_targets import open_channel
from weft.controller.port_states import (
    WATCH_PORTS,
    FollowedPorts,
    PortState,
    failures_of,
    peers_of_ports_down,
    port_states,
    watch_ports,
)
from weft.switch.daemon.port_service import MAX_WATCHERS, METHOD, SERVICE, PortBoard, TooManyError, handler
from weft.switch.p4runtime.service import Server
from weft.topologies import leaf_spine


@asynccontextmanager
async def served_at(board: PortBoard | None) -> AsyncIterator[str]:
    server = Server({}, "127.0.0.1:0", other_services=[handler(board)] if board else [])
    server.start()
    try:
        yield server.address
    finally:
        await asyncio.to_thread(server.stop)


@asynccontextmanager
async def served(board: PortBoard | None) -> AsyncIterator[grpc.aio.Channel]:
    async with served_at(board) as address:
        channel = open_channel(address)
        try:
            yield channel  # type: ignore[misc]
        finally:
            await channel.close()


def test_client_and_server_name_the_same_method() -> None:
    assert f"/{SERVICE}/{METHOD}" == WATCH_PORTS


def test_a_watcher_gets_all_ports_and_then_changes() -> None:
    board = PortBoard()
    board.set_up(1, 2, True)
    board.set_up(1, 1, False)

    async def watch() -> list[list[PortState]]:
        seen = []
        async with served(board) as channel:
            async for states in watch_ports(channel):
                seen.append(states)
                if len(seen) == 1:
                    board.set_up(1, 2, True)  # no change
                    board.set_up(1, 1, True)
                    board.set_up(7, 3, False)
                if len(seen) == 3:
                    assert await port_states(channel) == {(1, 1): True, (1, 2): True, (7, 3): False}
                    return seen
        raise AssertionError("the stream has ended")

    assert asyncio.run(watch()) == [
        [PortState(1, 1, False), PortState(1, 2, True)],
        [PortState(1, 1, True)],
        [PortState(7, 3, False)],
    ]


def test_a_server_that_does_not_report_ports_has_none_down() -> None:
    async def ask() -> dict[tuple[int, int], bool]:
        async with served(None) as channel:
            return await port_states(channel)

    assert asyncio.run(ask()) == {}


def test_a_server_that_is_not_there_is_an_error_with_its_name() -> None:
    async def ask() -> None:
        channel = open_channel("127.0.0.1:1")
        try:
            await port_states(channel, "p0l0")
        finally:
            await channel.close()

    with refused(SwitchUnavailableError, problem="p0l0: Ports/Watch: no answer"):
        asyncio.run(ask())


def test_followed_ports_change_as_they_are_reported() -> None:
    boards = [PortBoard(), PortBoard()]
    boards[0].set_up(1, 1, True)
    boards[1].set_up(2, 1, False)

    async def follow() -> None:
        async with (
            served_at(boards[0]) as first,
            served_at(boards[1]) as second,
            served_at(None) as third,
            FollowedPorts([first, second, third]) as ports,
        ):
            assert ports.states == {(1, 1): True, (2, 1): False}
            await ports.change(0.0)
            boards[1].set_up(2, 1, True)
            while not ports.states[2, 1]:
                await ports.change()
            boards[0].set_up(1, 2, False)
            while (1, 2) not in ports.states:
                await ports.change()
            assert ports.states == {(1, 1): True, (1, 2): False, (2, 1): True}

    asyncio.run(follow())


def test_followed_ports_of_a_server_that_goes_are_an_error() -> None:
    async def follow() -> None:
        board = PortBoard()
        server = Server({}, "127.0.0.1:0", other_services=[handler(board)])
        server.start()
        async with FollowedPorts([server.address]) as ports:
            await asyncio.to_thread(server.stop)
            while True:
                await ports.change()

    with refused(SwitchUnavailableError, problem="Ports/Watch"):
        asyncio.run(follow())


def test_ports_of_a_server_that_is_not_there_are_not_followed() -> None:
    async def follow() -> None:
        async with FollowedPorts(["127.0.0.1:1"]):
            raise AssertionError("nobody answers")

    with refused(SwitchUnavailableError, problem="no answer"):
        asyncio.run(follow())


def test_watchers_that_have_left_make_room_for_others() -> None:
    board = PortBoard()
    watchers = [board.watch() for _ in range(MAX_WATCHERS)]
    with pytest.raises(TooManyError, match=f"{MAX_WATCHERS} watch"):
        board.watch()

    async def ask() -> None:
        async with served(board) as channel:
            await port_states(channel, "p0l0")

    with refused(RequestRefusedError, problem="RESOURCE_EXHAUSTED"):
        asyncio.run(ask())
    board.leave(watchers[0])
    board.leave(watchers[0])
    board.set_up(1, 1, True)
    assert [watchers[0].get(), watchers[0].get()] == [b'{"ports": []}', None]
    assert [json.loads(watchers[1].get() or b"") for _ in range(2)] == [
        {"ports": []},
        {"ports": [[1, 1, True]]},
    ]
    asyncio.run(ask())


def test_ports_are_named_by_the_links_that_they_end() -> None:
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    leaf, spine = fabric.switch("p0l1"), fabric.switch("p0s0")
    states = {(leaf.device_id, 1): False, (leaf.device_id, 3): False, (spine.device_id, 2): True}
    down = [fabric.link_between("h2", "p0l1"), fabric.link_between("p0l1", "p0s0")]
    assert failures_of(fabric, states).links == {link.ends for link in down}
    assert peers_of_ports_down(fabric, leaf.device_id, states) == ["h2", "p0s0"]
    assert peers_of_ports_down(None, leaf.device_id, states) == ["port 1", "port 3"]
    assert peers_of_ports_down(fabric, spine.device_id, states) == []
