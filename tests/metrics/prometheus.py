"""Prometheus of the distribution as a process on loopback, with the project's rules at a faster pace."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from weft.paths import ROOT

CONFIGURATION = ROOT / "docs/prometheus/prometheus.yaml"
_DURATION_S = re.compile(r"(?<=\[|:)( ?)(\d+)s\b")
_PATIENCE_S = 60.0


def faster(text: str, times: int) -> str:
    """Return rules or a configuration of which all durations, which are whole seconds, are so many times as short."""
    return _DURATION_S.sub(lambda found: f"{found[1]}{int(found[2]) * 1000 // times}ms", text)


class Prometheus:
    """Scrapes a URL by docs/prometheus/prometheus.yaml, every duration a `times`th. Use as a context manager.

    Its rules are that file's and `more_rules`.
    """

    def __init__(self, directory: Path, url: str, more_rules: Sequence[Path] = (), times: int = 5) -> None:
        command = shutil.which("prometheus")
        if command is None:
            pytest.skip("prometheus is not installed")
        configuration = yaml.safe_load(faster(CONFIGURATION.read_text(), times))
        target = urllib.parse.urlsplit(url).netloc
        configuration["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
        rules = [*(CONFIGURATION.with_name(name) for name in configuration["rule_files"]), *more_rules]
        configuration["rule_files"] = [each.name for each in rules]
        for each in rules:
            (directory / each.name).write_text(faster(each.read_text(), times))
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        self._log = directory / "prometheus.log"
        self._command = [
            command,
            f"--config.file={directory / 'prometheus.yaml'}",
            f"--storage.tsdb.path={directory / 'series'}",
            f"--web.listen-address={self._address}",
        ]
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline_s = time.monotonic() + _PATIENCE_S
        try:
            while not self._is_ready():
                assert self._process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline_s, self._log.read_text()
                self._process_waits(0.1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self._address}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _process_waits(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def _ask(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]

    def firing(self) -> list[dict[str, str]]:
        """Return the labels of the alerts that fire now, `alertname` among them."""
        return [each["labels"] for each in self._ask("alerts")["alerts"] if each["state"] == "firing"]

    def value(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return what an expression has now: labels and value of each series."""
        found = self._ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]
