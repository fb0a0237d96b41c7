"""Client arbitration (P4Runtime §5), pure and over gRPC."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from finsy.proto import U128, p4r, rpc_code
from p4runtime_client import P4RuntimeClient, code_of
from router_program import router_config

from tests.refusals import refused
from weft.switch.p4runtime.arbitration import MAX_CLIENTS_PER_ROLE, MAX_ROLES, Arbitration
from weft.switch.p4runtime.errors import RequestError
from weft.switch.p4runtime.service import Server


def message(election_id: int | None, role: str = "", device_id: int = 1) -> p4r.MasterArbitrationUpdate:
    made = p4r.MasterArbitrationUpdate(device_id=device_id)
    if election_id is not None:
        made.election_id.CopyFrom(U128.encode(election_id))
    if role:
        made.role.name = role
    return made


class Model:
    """An Arbitration and the last status code that each client received."""

    def __init__(self) -> None:
        self.arbitration: Arbitration[str] = Arbitration(1)

    def _codes(self, updates: list[Any]) -> dict[str, str]:
        return {client: rpc_code.Code.Name(update.status.code) for client, update in updates}

    def update(self, client: str, election_id: int | None, role: str = "") -> dict[str, str]:
        return self._codes(self.arbitration.update(client, message(election_id, role)))

    def disconnect(self, client: str) -> dict[str, str]:
        return self._codes(self.arbitration.disconnect(client))

    def may_write(self, election_id: int | None, role: str = "") -> bool:
        try:
            self.arbitration.require_primary(role, None if election_id is None else U128.encode(election_id))
        except RequestError:
            return False
        return True


def test_the_highest_election_id_is_primary() -> None:
    model = Model()
    assert model.update("a", 5) == {"a": "OK"}
    assert model.update("b", 3) == {"b": "ALREADY_EXISTS"}
    assert model.update("c", 1 << 100) == {"a": "ALREADY_EXISTS", "b": "ALREADY_EXISTS", "c": "OK"}
    assert model.may_write(1 << 100)
    assert not model.may_write(5)
    assert not model.may_write(None)


def test_without_an_election_id_nobody_becomes_primary() -> None:
    model = Model()
    assert model.update("a", None) == {"a": "NOT_FOUND"}
    assert not model.may_write(None)
    assert model.update("b", 0) == {"a": "ALREADY_EXISTS", "b": "OK"}
    assert model.may_write(0)


def test_when_the_primary_leaves_only_an_id_as_high_takes_over() -> None:
    model = Model()
    model.update("a", 5)
    model.update("b", 3)
    assert model.disconnect("a") == {"b": "NOT_FOUND"}
    assert not model.may_write(5)
    assert model.update("b", 4) == {"b": "NOT_FOUND"}
    assert model.update("b", 5) == {"b": "OK"}
    assert model.disconnect("unknown") == {}


def test_a_primary_can_step_down() -> None:
    model = Model()
    model.update("a", 5)
    model.update("b", 3)
    assert model.update("a", 2) == {"a": "NOT_FOUND", "b": "NOT_FOUND"}
    assert not model.may_write(2)


def test_roles_are_independent() -> None:
    model = Model()
    model.update("a", 5)
    assert model.update("b", 1, "telemetry") == {"b": "OK"}
    assert model.may_write(5)
    assert model.may_write(1, "telemetry")
    assert not model.may_write(5, "telemetry")
    with refused(RequestError, valid="'', 'telemetry'", problem="unknown role 'x'"):
        model.arbitration.require_primary("x", U128.encode(5))


@pytest.mark.parametrize(
    ("update", "code"),
    [
        (message(5), rpc_code.INVALID_ARGUMENT),
        (message(7, "other"), rpc_code.FAILED_PRECONDITION),
        (message(7, device_id=2), rpc_code.FAILED_PRECONDITION),
    ],
)
def test_updates_that_end_the_stream(update: p4r.MasterArbitrationUpdate, code: int) -> None:
    model = Model()
    model.update("a", 5)
    model.update("b", 3)
    with pytest.raises(RequestError) as caught:
        model.arbitration.update("b", update)
    assert caught.value.code == code


def test_too_many_clients_and_roles_are_refused() -> None:
    model = Model()
    for number in range(MAX_CLIENTS_PER_ROLE):
        model.update(f"c{number}", number)
    with pytest.raises(RequestError) as caught:
        model.update("late", 99)
    assert caught.value.code == rpc_code.RESOURCE_EXHAUSTED
    for number in range(MAX_ROLES - 1):
        model.update(f"r{number}", 1, role=f"role{number}")
    with refused(RequestError, problem="the device has 64 roles already"):
        model.update("one more", 1, role="one more")


def test_an_update_that_changes_nothing_is_sent_to_everybody() -> None:
    model = Model()
    model.update("a", 5)
    model.update("b", 3)
    assert model.update("a", 5) == {"b": "ALREADY_EXISTS", "a": "OK"}


def test_role_ids_of_before_1_4_are_refused() -> None:
    old = message(1)
    old.role.id = 3
    with refused(RequestError, problem="role id 3: roles have names"):
        Model().arbitration.update("a", old)


@pytest.mark.parametrize("switches", ["oracle"], indirect=True)
def test_over_grpc(server: Server) -> None:
    first, second = (P4RuntimeClient(server.address, election_id=n) for n in (1, 2))
    assert first.arbitrate().status.code == rpc_code.OK
    assert second.arbitrate().status.code == rpc_code.OK
    update = first.receive("arbitration").arbitration
    assert update.status.code == rpc_code.ALREADY_EXISTS
    assert U128.decode(update.election_id) == 2
    assert code_of(lambda: first.set_pipeline(config=router_config())) == grpc.StatusCode.PERMISSION_DENIED
    second.set_pipeline(config=router_config())
    second.close()
    assert first.receive("arbitration").arbitration.status.code == rpc_code.NOT_FOUND
    first.election_id = 2
    assert first.arbitrate().status.code == rpc_code.OK
    first.write_updates()
    first.close()


def test_a_taken_election_id_ends_the_stream(server: Server) -> None:
    first, second = (P4RuntimeClient(server.address, election_id=1) for _ in range(2))
    first.arbitrate()
    assert code_of(second.arbitrate) == grpc.StatusCode.INVALID_ARGUMENT
    first.close()
    second.close()


def test_devices_are_independent(server: Server) -> None:
    first, second = (P4RuntimeClient(server.address, device_id=n) for n in (1, 2))
    assert [each.arbitrate().status.code for each in (first, second)] == [rpc_code.OK] * 2
    stranger = P4RuntimeClient(server.address, device_id=3)
    assert code_of(stranger.arbitrate) == grpc.StatusCode.NOT_FOUND
    for each in (first, second, stranger):
        each.close()
