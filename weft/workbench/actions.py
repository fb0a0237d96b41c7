"""The page's questions, by name: each takes a mapping of arguments and returns data for JSON."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from weft.errors import BadInputError
from weft.quantities.units import shown
from weft.scenario import read_yaml
from weft.scenario.dotted import plain
from weft.workbench.checking import described
from weft.workbench.editing import remove_key, set_key
from weft.workbench.folder import RUNS, ConflictError, Folder, Scenario
from weft.workbench.jobs import Job, Jobs
from weft.workbench.pages import Pages
from weft.workbench.summaries import Summaries
from weft.workbench.templates import template, template_names

Arguments = Mapping[str, Any]
_MOST_CHANGES = 100
_MOST_PARTS = 40
_MOST_COMPARED = 12
_MOST_DRAWING_BYTES = 16 << 20
# Values of options of `weft trace`, which the command itself checks.
_OPTION_VALUE = re.compile(r"[^\x00-\x1f\x7f]{1,1000}")
_TRACE_OPTIONS = {"switch": "--switch", "packets": "--packets", "when": "--when", "port": "--port"}
_TRACE_TIMES = {"from": "--from", "until": "--until"}


class Actions:
    """Answers questions about a folder. Use as a context manager; `scratch` holds pages and drawings meanwhile."""

    def __init__(self, folder: Folder, scratch: Path) -> None:
        self._folder = folder
        self._scratch = scratch
        self._summaries = Summaries(folder)
        self.jobs = Jobs(folder.path)
        self.pages = Pages(scratch)
        self._made = 0
        self._named: dict[str, Callable[[Arguments], Any]] = {
            "start": self._start,
            "scenarios": self._scenarios,
            "read": self._read,
            "write": self._write,
            "change": self._change,
            "new": self._new,
            "copy": self._copy,
            "rename": self._rename,
            "delete": self._delete,
            "draw": self._draw,
            "drawing": self._drawing,
            "runs": self._runs,
            "run": self._run,
            "report": self._report,
            "trace": self._trace,
            "compare": self._compare,
            "jobs": self._jobs,
            "cancel": self._cancel,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.jobs.end_all()

    def named(self, name: str) -> Callable[[Arguments], Any]:
        """Return a question's answer as a function. Raises BadInputError."""
        if name not in self._named:
            raise BadInputError(f"there is no question {shown(name)}", valid=self._named)
        return self._named[name]

    def _start(self, _: Arguments) -> Any:
        return {"folder": str(self._folder.path), "templates": template_names()}

    def _scenarios(self, _: Arguments) -> Any:
        return {"scenarios": self._folder.names()}

    def _read(self, given: Arguments) -> Any:
        return self._described(self._folder.read(given.get("file", "")))

    def _write(self, given: Arguments) -> Any:
        text = _text_of(given, "text")
        return self._described(self._folder.write(_text_of(given, "file"), text, _text_of(given, "version")))

    def _change(self, given: Arguments) -> Any:
        """Set and remove keys: each change has `path`, and `value` (YAML), `text` (a plain text) or neither."""
        file, changes = _text_of(given, "file"), given.get("changes")
        if not isinstance(changes, list) or not 0 < len(changes) <= _MOST_CHANGES:
            raise BadInputError(f"changes is {shown(changes)}", valid=f"a list of 1 to {_MOST_CHANGES}")
        with self._folder.lock:
            text = self._folder.read(file).text
            for change in changes:
                text = changed(text, change, file)
            return self._described(self._folder.write(file, text, _text_of(given, "version")))

    def _new(self, given: Arguments) -> Any:
        file = _text_of(given, "file")
        return self._described(self._folder.create(file, template(given.get("template"), file)))

    def _copy(self, given: Arguments) -> Any:
        scenario, to = self._folder.read(_text_of(given, "file")), _text_of(given, "to")
        # Comments say how to run the file that they are in.
        named = rf"(#.*\bweft run ){re.escape(scenario.file)}(?!\S)"
        text = re.sub(named, lambda found: found[1] + to, scenario.text)
        return self._described(self._folder.create(to, text))

    def _rename(self, given: Arguments) -> Any:
        file, to = _text_of(given, "file"), _text_of(given, "to")
        self._require_idle(file)
        self._folder.rename(file, to)
        return self._described(self._folder.read(to))

    def _delete(self, given: Arguments) -> Any:
        file = _text_of(given, "file")
        self._require_idle(file)
        self._folder.delete(file, _text_of(given, "version"))
        return {}

    def _draw(self, given: Arguments) -> Any:
        scenario = self._folder.read(_text_of(given, "file"))
        for job in self.jobs.all():
            if job.kind == "draw" and job.file == scenario.file:
                self.jobs.cancel(job.number)
        target = self._new_file(".svg")
        return self._started(
            self.jobs.start("draw", scenario.file, ["topology", "draw", scenario.file, "--output", str(target)], target)
        )

    def _drawing(self, given: Arguments) -> Any:
        """Return the drawing that a command has made, once."""
        job = self.jobs.job(given.get("job"))
        if job.kind != "draw" or job.made is None or job.is_running:
            raise BadInputError("that command has not drawn anything")
        try:
            with job.made.open("rb") as stream:
                content = stream.read(_MOST_DRAWING_BYTES + 1)
            job.made.unlink()
        except OSError:
            raise BadInputError("that command has not drawn anything") from None
        if len(content) > _MOST_DRAWING_BYTES:
            raise BadInputError("the drawing is too large for this page: weft topology draw writes it into a file")
        return {"svg": content.decode(errors="replace")}

    def _runs(self, given: Arguments) -> Any:
        scenario = self._folder.read(_text_of(given, "file"))
        if given.get("all") is True:
            found = self._folder.all_runs()
        else:
            name = described(scenario.text, scenario.file, self._folder.path)["name"]
            found = self._folder.runs(scenario.file, name)
        return {"runs": [self._summaries.of(run) for run in found]}

    def _run(self, given: Arguments) -> Any:
        scenario = self._folder.read(_text_of(given, "file"))
        directory = self._folder.new_run(scenario.file)

        def ended(_job: Job, _code: int) -> None:
            # A run that has left nothing has no directory.
            with contextlib.suppress(OSError):
                directory.rmdir()

        words = ["run", scenario.file, "--out", f"{RUNS}/{directory.name}"]
        try:
            return self._started(self.jobs.start("run", scenario.file, words, directory, ended))
        except BaseException:
            directory.rmdir()
            raise

    def _report(self, given: Arguments) -> Any:
        """Return the page of a run's report, or the command that makes it."""
        run = _text_of(given, "run")
        directory = self._folder.run_directory(run)
        page, written_ns = directory / "report.html", self._folder.results_time_ns(run)
        if written_ns is None:
            raise BadInputError("has no results", place=run)
        with contextlib.suppress(OSError):
            if page.lstat().st_mtime_ns >= written_ns:
                return {"page": self.pages.add(page)}
        return self._started(self.jobs.start("report", run, ["report", f"{RUNS}/{run}"], page, self._add_page))

    def _trace(self, given: Arguments) -> Any:
        file = self._folder.read(_text_of(given, "file")).file
        words = ["trace", file]
        for key, option in {**_TRACE_OPTIONS, **_TRACE_TIMES}.items():
            value = given.get(key)
            if value in (None, ""):
                continue
            if not (isinstance(value, str) and _OPTION_VALUE.fullmatch(value)):
                raise BadInputError(f"{key} is {shown(value)}", valid="a text of one line")
            words.append(f"{option}={value}")
        target = self._new_file(".html")
        return self._started(self.jobs.start("trace", file, [*words, f"--page={target}"], target, self._add_page))

    def _compare(self, given: Arguments) -> Any:
        runs = given.get("runs")
        if not isinstance(runs, list) or not 2 <= len(runs) <= _MOST_COMPARED:
            raise BadInputError(f"runs is {shown(runs)}", valid=f"a list of 2 to {_MOST_COMPARED}")
        directories = [f"{RUNS}/{self._folder.run_directory(run).name}" for run in runs]
        target = self._new_file(".html")
        words = ["compare", *directories, f"--output={target}"]
        return self._started(self.jobs.start("compare", " ".join(map(str, runs)), words, target, self._add_page))

    def _jobs(self, given: Arguments) -> Any:
        """Return the commands that are running, and those with `numbers`."""
        numbers = given.get("numbers", [])
        if not isinstance(numbers, list):
            raise BadInputError(f"numbers is {shown(numbers)}", valid="a list")
        return {"jobs": [job.as_dict() for job in self.jobs.all() if job.is_running or job.number in numbers]}

    def _cancel(self, given: Arguments) -> Any:
        return self._started(self.jobs.cancel(given.get("job")))

    def _started(self, job: Job) -> Any:
        return {"job": job.as_dict()}

    def _add_page(self, job: Job, code: int) -> None:
        if code == 0 and job.made is not None:
            job.page = self.pages.add(job.made)

    def _described(self, scenario: Scenario) -> Any:
        about = described(scenario.text, scenario.file, self._folder.path)
        return {"file": scenario.file, "text": scenario.text, "version": scenario.version, **about}

    def _require_idle(self, file: str) -> None:
        if any(job.is_running and job.file == file for job in self.jobs.all()):
            raise ConflictError("is in use by a command: cancel it, or wait for its end", place=file)

    def _new_file(self, suffix: str) -> Path:
        with self._folder.lock:
            self._made += 1
            return self._scratch / f"{self._made}{suffix}"


def _text_of(given: Arguments, key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str):
        raise BadInputError(f"{key} is {shown(value)}", valid="a text")
    return value


def changed(text: str, change: Any, file: str) -> str:
    """Return a scenario's text after a change of the page's (`path`, and `value` or `text`). Raises BadInputError."""
    path = change.get("path") if isinstance(change, dict) else None
    if not isinstance(path, list) or not 0 < len(path) <= _MOST_PARTS or not all(_is_part(part) for part in path):
        raise BadInputError(f"the change {shown(change)} has no path")
    if "text" in change:
        return set_key(text, path, _text_of(change, "text"), file)
    if "value" not in change:
        return remove_key(text, path, file)
    value = read_yaml(_text_of(change, "value"), "the value")
    return set_key(text, path, plain(value), file)


def _is_part(part: object) -> bool:
    if isinstance(part, str):
        return 0 < len(part) <= 200
    return isinstance(part, int) and not isinstance(part, bool) and 0 <= part < 100_000
