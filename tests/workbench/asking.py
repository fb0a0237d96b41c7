"""Asks a workbench as its page does, or as an attacker would."""

from __future__ import annotations

import contextlib
import http.client
import json
from typing import Any

from weft.workbench.server import WorkbenchServer


class Asking:
    """A client with the token."""

    def __init__(self, server: WorkbenchServer) -> None:
        self.server = server
        self.token = server.url.partition("#token=")[2]

    def raw(
        self, target: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Return status, headers and text of a request's answer; headers are as given, with - for _."""
        connection = http.client.HTTPConnection(*self.server.place, timeout=60)
        with contextlib.closing(connection):
            own = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, target, body=body, headers=own)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.headers.items()}
            return answer.status, found, answer.read().decode()

    def question(self, name: str, given: Any = None, **headers: str) -> tuple[int, Any]:
        """Return status and content of a question's answer."""
        own = {"Authorization": f"Bearer {self.token}", "Content_Type": "application/json"} | headers
        status, _, text = self.raw(f"/api/{name}", "POST", json.dumps({} if given is None else given).encode(), **own)
        return status, json.loads(text)

    def ask(self, name: str, **given: Any) -> Any:
        """Return the answer to a question, which must have one."""
        status, found = self.question(name, given)
        assert status == 200, found
        return found

    def refused(self, name: str, **given: Any) -> tuple[int, str]:
        """Return status and message of a question that must be refused."""
        status, found = self.question(name, given)
        assert status != 200, found
        return status, str(found["error"])

    def ended(self, answer: Any) -> dict[str, Any]:
        """Return the state of a command that an answer has named, once it has ended."""
        job = self.server.jobs.job(answer["job"]["number"])
        assert job.has_ended.wait(120)
        return job.as_dict()
