"""Serves the page read-only, to clients with the token, and only under host names that no other site can claim."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from weft.errors import BadInputError
from weft.live.page import live_page
from weft.live.place import Place
from weft.live.view import LiveView
from weft.metrics.server import UNREADABLE, Answer, LabServer, Request, is_own_name

MOST_CONNECTIONS = 8
_TOKEN_BYTES = 24
_JSON = "application/json"
_ALWAYS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer: the address contains the token, and no other site may embed the content."""


class LivePageServer(LabServer):
    """Serves a view's page. Use as a context manager; `url` is the page's address, including the token.

    EnvironmentLacksError: the port is taken, or the address is not one of this machine's.
    """

    def __init__(self, place: Place, view: LiveView, title: str) -> None:
        self._view = view
        self._title = title
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._paths: dict[str, Callable[[Mapping[str, str]], Answer]] = {
            "/": self._page,
            "/state": self._state,
            "/history": self._history,
            "/contents": self._contents,
            "/rows": self._rows,
        }
        super().__init__((place.address, place.port), "--web", self.answer, MOST_CONNECTIONS)

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"{self.base_url}/?token={self._token}"

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        # DNS rebinding: another site's name may lead a browser here, and its scripts would read the answers.
        if not is_own_name(request.headers.get("host", "")):
            return _refused(HTTPStatus.FORBIDDEN, "ask for this page by localhost or an IP address")
        try:
            parts = urlsplit(request.target)
            query = {name: values[-1] for name, values in parse_qs(parts.query, max_num_fields=16).items()}
        except ValueError:
            return _refused(HTTPStatus.BAD_REQUEST, "the address is invalid")
        said = request.headers.get("authorization", "").removeprefix("Bearer ") or query.get("token", "")
        # Compare in constant time, before reading anything, so that requests without a token cause no work.
        if not hmac.compare_digest(said.encode(), self._token.encode()):
            return _refused(HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the address that weft printed")
        path = self._paths.get(parts.path)
        if path is None:
            return _refused(HTTPStatus.NOT_FOUND, f"nothing is there (valid: {', '.join(self._paths)})")
        try:
            return path(query)
        except BadInputError as error:
            return _refused(HTTPStatus.BAD_REQUEST, str(error))
        except UNREADABLE as error:
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _page(self, _: Mapping[str, str]) -> Answer:
        # A new nonce for each answer: a script injected into the page, for example through a switch's name, has none.
        nonce = secrets.token_urlsafe(_TOKEN_BYTES)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        page = live_page(self._view, self._title, nonce)
        headers = {**_ALWAYS, "Content-Security-Policy": policy}
        return Answer(page, "text/html; charset=utf-8", headers=headers)

    def _state(self, query: Mapping[str, str]) -> Answer:
        after = query.get("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) < 16):
            raise BadInputError(f"after={after!r} is not the number of an event")
        return _as_json(self._view.state(int(after)))

    def _history(self, query: Mapping[str, str]) -> Answer:
        return _as_json(self._view.history([name for name in query.get("ports", "").split(",") if name]))

    def _contents(self, query: Mapping[str, str]) -> Answer:
        return _as_json(self._view.contents.names(query.get("switch", "")))

    def _rows(self, query: Mapping[str, str]) -> Answer:
        asked = (query.get(key, "") for key in ("switch", "kind", "name"))
        return _as_json(self._view.contents.rows(*asked))


def _as_json(value: Any) -> Answer:
    return Answer(json.dumps(value, separators=(",", ":"), allow_nan=False), _JSON, headers=_ALWAYS)


def _refused(status: HTTPStatus, why: str) -> Answer:
    return Answer(f"{why}\n", status=status, headers=_ALWAYS)
