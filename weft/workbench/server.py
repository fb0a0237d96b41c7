"""Serves the workbench's page, and what the page asks for: scenarios, changes of them, commands and their pages.

Whoever may ask can run programs as the user, since scenarios name users' files. So each question needs the token,
in a header, which no form and no other site's script can send. The page and its scripts, which are the same for
everybody, need none; the token comes after the # of the printed address, so that it is in no request, log or referrer.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from weft.errors import BadInputError, WeftError
from weft.metrics.server import LOOPBACK, Answer, LabServer, Request, is_own_name
from weft.quantities.units import shown
from weft.quantities.yaml_files import MAX_FILE_BYTES
from weft.report.html import asset
from weft.scenario.reference import json_schema
from weft.system.scratch import scratch_directory
from weft.workbench import DEFAULT_PORT
from weft.workbench.actions import Actions
from weft.workbench.folder import ConflictError, Folder
from weft.workbench.jobs import Jobs
from weft.workbench.pages import POLICY, PREFIX

_MOST_CONNECTIONS = 16
_RECEIVING_S = 10.0
_SENDING_S = 60.0
"""A report of some megabytes may cross a slow SSH connection."""
_MOST_BODY_BYTES = 4 * MAX_FILE_BYTES
"""JSON writes a character of a scenario in up to six bytes, most of them in one."""
_TOKEN_BYTES = 24
_ASSETS = Path(__file__).parent / "assets"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
_API = "/api/"
_ALWAYS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class WorkbenchServer(LabServer):
    """Serves a folder on loopback. Use as a context manager; leaving it ends the commands that the page has started.

    Raises:
        BadInputError: the folder cannot be opened.
        EnvironmentLacksError: the port is taken.
    """

    def __init__(self, folder: Path, port: int = DEFAULT_PORT) -> None:
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._stack = ExitStack()
        self.folder = Folder(folder)
        self._stack.callback(self.folder.close)
        try:
            super().__init__(
                (LOOPBACK, port),
                "--port",
                self.answer,
                _MOST_CONNECTIONS,
                _RECEIVING_S,
                most_body_bytes=_MOST_BODY_BYTES,
                sending_s=_SENDING_S,
            )
        except BaseException:
            self._stack.close()
            raise

    @property
    def url(self) -> str:
        """Address of the page, with the token."""
        return f"{self.base_url}/#token={self._token}"

    def __enter__(self) -> Self:
        self._scratch = self._stack.enter_context(scratch_directory())
        self._actions = self._stack.enter_context(Actions(self.folder, self._scratch))
        super().__enter__()
        return self

    @property
    def jobs(self) -> Jobs:
        """The commands that the page has started."""
        return self._actions.jobs

    def way_in(self) -> Path:
        """Write a file that leads a browser to the page, and return it; only this user can read it.

        A browser's command line, which all users of the machine can read, must not have the token.
        """
        path = self._scratch / "workbench.html"
        path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={self.url}">', encoding="utf-8")
        return path

    def __exit__(self, *given: object) -> None:
        try:
            super().__exit__(*given)
        finally:
            self._stack.close()

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        host = request.headers.get("host", "")
        # DNS rebinding: another site's name may lead a browser here, and its scripts would be of the page's origin.
        if not is_own_name(host):
            return _refused(HTTPStatus.FORBIDDEN, "ask for this page by localhost or an IP address")
        try:
            path = urlsplit(request.target).path
        except ValueError:
            return _refused(HTTPStatus.BAD_REQUEST, "the address is invalid")
        if path.startswith(_API):
            return self._question(request, path.removeprefix(_API), host)
        if request.method != "GET":
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED, f"POST is for {_API}")
        if path.startswith(PREFIX):
            return self._made_page(path)
        return _asset(path)

    def _question(self, request: Request, name: str, host: str) -> Answer:
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "same-origin")
        if (origin is not None and origin != f"http://{host}") or site not in ("same-origin", "none"):
            return _refused(HTTPStatus.FORBIDDEN, "another site's page may not ask")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        # Compare in constant time, before reading anything, so that requests without a token cause no work.
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return _refused(HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the address that weft printed")
        if request.method != "POST" or request.headers.get("content-type") != "application/json":
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED, "questions are POST requests of JSON")
        if name == "schema":
            return Answer(_schema(), "application/json", headers=_ALWAYS)
        try:
            action = self._actions.named(name)
            return _as_json(action(_arguments(request.body)))
        except ConflictError as error:
            return _refused(HTTPStatus.CONFLICT, str(error))
        except BadInputError as error:
            return _refused(HTTPStatus.BAD_REQUEST, str(error))
        except WeftError as error:
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _made_page(self, path: str) -> Answer:
        try:
            page = self._actions.pages.read(path)
        except BadInputError as error:
            return _refused(HTTPStatus.NOT_FOUND, str(error))
        headers = {**_ALWAYS, "Content-Security-Policy": POLICY}
        return Answer(page, "text/html; charset=utf-8", headers=headers)


def _asset(path: str) -> Answer:
    found = _assets().get(path)
    if found is None:
        return _refused(HTTPStatus.NOT_FOUND, "nothing is there")
    text, kind = found
    headers = {**_ALWAYS, "Content-Security-Policy": _POLICY, "X-Frame-Options": "DENY"}
    return Answer(text, f"{kind}; charset=utf-8", headers=headers)


@cache
def _assets() -> Mapping[str, tuple[str, str]]:
    """Return the page's files by path, each with its type."""
    found = {
        f"/{file.name}": (file.read_text(encoding="utf-8"), _TYPES[file.suffix])
        for file in _ASSETS.iterdir()
        if file.suffix in _TYPES
    }
    found["/"] = found.pop("/workbench.html")
    # The colours and tables of reports.
    found["/page.css"] = (asset("page.css"), _TYPES[".css"])
    return found


_schema: Callable[[], str] = cache(json_schema)


def _arguments(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}", parse_constant=partial(_no_number))
    except (ValueError, RecursionError):
        raise BadInputError("the request is not JSON") from None
    if not isinstance(found, dict):
        raise BadInputError(f"the request is {shown(found)}, no object")
    return found


def _no_number(name: str) -> None:
    raise ValueError(name)


def _as_json(value: Any) -> Answer:
    return Answer(json.dumps(value, separators=(",", ":"), allow_nan=False), "application/json", headers=_ALWAYS)


def _refused(status: HTTPStatus, why: str) -> Answer:
    return Answer(json.dumps({"error": why}), "application/json", status=status, headers=_ALWAYS)
