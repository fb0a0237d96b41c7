"""Who gets an answer, and what a page or a stranger can reach: one folder's scenarios and runs, with the token."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asking import Asking
from weft.errors import BadInputError, EnvironmentLacksError
from weft.paths import ROOT
from weft.quantities.yaml_files import MAX_FILE_BYTES
from weft.workbench.folder import Folder
from weft.workbench.pages import Pages
from weft.workbench.server import WorkbenchServer

QUESTIONS = (
    *("start", "schema", "scenarios", "read", "write", "change", "new", "copy", "rename", "delete", "draw", "drawing"),
    *("runs", "run", "report", "trace", "compare", "jobs", "cancel"),
)
TAKES_A_FILE = ("read", "write", "change", "copy", "rename", "delete", "draw", "runs", "run", "trace")
OUTSIDE = ["../secret.yaml", "/etc/passwd", "a/../pair.yaml", "sub/x.yaml", "..", ".", "", ".hidden.yaml", "-x.yaml"]
OUTSIDE += ["pair.yaml\0", "pair.yaml\n", "pair.txt", "lab:01-allreduce", "x" * 200 + ".yaml", "pаir.yaml"]


def test_the_printed_address_has_the_token_where_no_request_has_it(bench: Asking) -> None:
    assert bench.server.url.startswith("http://127.0.0.1:")
    assert len(bench.token) >= 32
    status, headers, page = bench.raw("/")
    assert status == 200
    assert bench.token not in page
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_the_page_loads_nothing_from_elsewhere(bench: Asking) -> None:
    for file in sorted((ROOT / "weft/workbench/assets").iterdir()):
        path = "/" if file.name == "workbench.html" else f"/{file.name}"
        status, headers, text = bench.raw(path)
        assert status == 200
        assert headers["x-content-type-options"] == "nosniff"
        assert "https://" not in text
        assert "http://" not in text
        assert "innerHTML" not in text
        assert " style=" not in text


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_question_is_answered_without_the_token(bench: Asking, name: str) -> None:
    for sent in (
        "",
        "Bearer ",
        f"Bearer {bench.token[:-1]}",
        f"Bearer {bench.token}x",
        "Bearer \u00e9",
        bench.token[1:],
    ):
        status, found = bench.question(name, {"file": "pair.yaml"}, Authorization=sent)
        assert status == 403, sent
        assert bench.token not in json.dumps(found)
    status, _, _ = bench.raw(f"/api/{name}?token={bench.token}", "POST", b"{}", Content_Type="application/json")
    assert status == 403


@pytest.mark.parametrize(
    ("host", "is_served"),
    [
        ("localhost", True), ("127.0.0.1:1", True), ("[::1]:9466", True), ("10.0.0.7", True),
        ("attacker.example", False), ("attacker.example:9466", False), ("localhost.attacker.example", False),
        ("127.0.0.1.attacker.example", False), ("", False), ("[", False),
    ],
)  # fmt: skip
def test_names_that_another_site_can_have_are_refused(bench: Asking, host: str, is_served: bool) -> None:
    assert (bench.question("start", Host=host)[0] == 200) == is_served
    assert (bench.raw("/", Host=host)[0] == 200) == is_served


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_pages_of_other_origins_may_not_ask(bench: Asking, headers: dict[str, str]) -> None:
    assert bench.question("start", **headers)[0] == 403


def test_the_page_itself_may_ask_through_a_forwarded_port(bench: Asking) -> None:
    assert bench.question("start", Host="localhost:8080", Origin="http://localhost:8080")[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_form_of_another_site_can_send_is_refused(bench: Asking, kind: str) -> None:
    assert bench.question("start", Content_Type=kind)[0] == 405


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_questions_are_post_requests(bench: Asking, method: str) -> None:
    status, _, _ = bench.raw(
        "/api/start", method, Authorization=f"Bearer {bench.token}", Content_Type="application/json"
    )
    assert status in (405, 501)


@pytest.mark.parametrize(
    ("length", "status"),
    [("1048577", 413), ("99999999999999999999", 413), ("-1", 411), ("x", 411), ("٣", 411), (None, 411)],
)
def test_bodies_have_a_length_and_a_bound(bench: Asking, length: str | None, status: int) -> None:
    said = f"Content-Length: {length}\r\n" if length is not None else "Transfer-Encoding: chunked\r\n"
    with socket.create_connection(bench.server.place) as connection:
        connection.sendall(f"POST /api/start HTTP/1.1\r\nHost: localhost\r\n{said}\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == str(status).encode()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'"x"', b"\xff", b"[" * 5000, b'{"file": NaN}'])
def test_bodies_that_are_no_object_are_refused(bench: Asking, body: bytes) -> None:
    status, _, text = bench.raw(
        "/api/read", "POST", body, Authorization=f"Bearer {bench.token}", Content_Type="application/json"
    )
    assert status == 400, text


@pytest.mark.parametrize("path", ["/nothing", "/../etc/passwd", "/pages/", "/pages/x", "/page.css/..", "/server.py"])
def test_other_paths_hold_nothing(bench: Asking, path: str) -> None:
    assert bench.raw(path)[0] == 404


@pytest.mark.parametrize("file", OUTSIDE, ids=repr)
def test_files_outside_the_folder_cannot_be_named(bench: Asking, folder: Path, file: str) -> None:
    (folder.parent / "secret.yaml").write_text("seed: 1\n", encoding="utf-8")
    (folder / "sub").mkdir()
    (folder / "sub/x.yaml").write_text("seed: 1\n", encoding="utf-8")
    (folder / "pair.txt").write_text("seed: 1\n", encoding="utf-8")
    before = sorted(folder.parent.rglob("*"))
    for name in TAKES_A_FILE:
        given = {"version": "x", "text": "", "to": "new.yaml", "changes": [{"path": ["seed"]}], "switch": "p0l0"}
        status, said = bench.refused(name, **given, file=file)
        assert status == 400
        assert "is not the name of a scenario file" in said
    for name in ("new", "copy", "rename"):
        key = "file" if name == "new" else "to"
        assert bench.refused(name, **{"file": "pair.yaml", "template": "empty", key: file})[0] == 400
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize(
    "run", ["..", "../runs", "x/../..", "", ".", "/tmp", "runs", "-o", "link", "x\0", 5, None, ["a"]]
)
def test_runs_outside_the_folder_cannot_be_named(bench: Asking, folder: Path, run: object) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "results.json").write_text("{}", encoding="utf-8")
    (folder / "runs").mkdir()
    (folder / "runs/link").symlink_to(outside)
    assert bench.refused("report", run=run)[0] == 400
    assert bench.refused("compare", runs=[run, run])[0] == 400
    assert bench.ask("runs", file="pair.yaml", all=True) == {"runs": []}


def test_links_are_not_followed(bench: Asking, folder: Path) -> None:
    secret = folder.parent / "secret.yaml"
    secret.write_text("seed: 1\n", encoding="utf-8")
    (folder / "link.yaml").symlink_to(secret)
    (folder / ".partial-pair.yaml").symlink_to(secret)
    (folder / "runs").symlink_to(folder.parent)
    assert bench.ask("scenarios") == {"scenarios": ["pair.yaml"]}
    assert bench.refused("read", file="link.yaml")[0] == 400
    assert bench.refused("run", file="link.yaml")[0] == 400
    assert "is there already" in bench.refused("new", file="link.yaml", template="empty")[1]
    version = bench.ask("read", file="pair.yaml")["version"]
    bench.ask("write", file="pair.yaml", text="seed: 2\n", version=version)
    assert "is a link" in bench.refused("run", file="pair.yaml")[1]
    assert secret.read_text(encoding="utf-8") == "seed: 1\n"
    assert (folder / "pair.yaml").read_text(encoding="utf-8") == "seed: 2\n"


def test_what_is_no_file_is_no_scenario(bench: Asking, folder: Path) -> None:
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    assert bench.ask("scenarios") == {"scenarios": ["pair.yaml"]}
    for name in ("folder.yaml", "pipe.yaml"):
        assert "is not a file" in bench.refused("read", file=name)[1]


def test_a_page_is_served_only_from_a_plain_file(tmp_path: Path) -> None:
    pages = Pages(tmp_path / "scratch")
    (tmp_path / "page.html").write_text("<p>", encoding="utf-8")
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    os.mkfifo(tmp_path / "pipe.html")
    assert pages.read(pages.add(tmp_path / "page.html")) == "<p>"
    for name in ("link.html", "pipe.html", "nothing.html"):
        with pytest.raises(BadInputError):
            pages.read(pages.add(tmp_path / name))
    first = pages.add(tmp_path / "page.html")
    for _ in range(100):
        pages.add(tmp_path / "page.html")
    with pytest.raises(BadInputError, match="no such page"):
        pages.read(first)


def test_pages_that_nobody_can_ask_for_are_deleted(tmp_path: Path) -> None:
    pages = Pages(tmp_path)
    kept = tmp_path / "runs/report.html"
    kept.parent.mkdir()
    for path in (kept, tmp_path / "1.html"):
        path.write_text("<p>", encoding="utf-8")
        pages.add(path)
    for _ in range(100):
        pages.add(kept)
    assert sorted(tmp_path.rglob("*.html")) == [kept]


CLASSES = {
    "fine": (ROOT / "examples/scan.py").read_text(encoding="utf-8") + "print('hello')\n",
    "wrong": "class Scan: pass\n",
    "ends": "import os\nos._exit(3)\n",
    "token": "import sys\nassert 'weft.workbench.server' not in sys.modules\nclass Scan: pass\n",
}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("fine", ""),
        ("wrong", "is no Collective"),
        ("ends", "ended with status 3"),
        ("token", "is no Collective"),
    ],
)
def test_classes_of_users_are_imported_elsewhere(bench: Asking, folder: Path, name: str, problem: str) -> None:
    (folder / "own.py").write_text(CLASSES[name], encoding="utf-8")
    version = bench.ask("read", file="pair.yaml")["version"]
    text = "traffic:\n  - {collective: 'own.py:Scan', sizes: [1KiB]}\n"
    found = bench.ask("write", file="pair.yaml", text=text, version=version)
    said = "\n".join(each["text"] for each in found["problems"])
    assert problem in said
    assert (problem == "") == (said == "")
    # As the file is now, not as it was when it was imported first.
    (folder / "own.py").write_text(CLASSES["fine"], encoding="utf-8")
    assert bench.ask("read", file="pair.yaml")["problems"] == []


def test_large_scenarios_are_refused(bench: Asking, folder: Path) -> None:
    version = bench.ask("read", file="pair.yaml")["version"]
    text = "#" * (MAX_FILE_BYTES + 1)
    assert "is too large" in bench.refused("write", file="pair.yaml", text=text, version=version)[1]
    (folder / "large.yaml").write_text(text, encoding="utf-8")
    assert "is too large" in bench.refused("read", file="large.yaml")[1]
    bench.ask("write", file="pair.yaml", text=text[:MAX_FILE_BYTES], version=version)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("fabric: {leaves: 1", "is not YAML"),
        ("a: &a [*a]", "stands within what it stands for"),
        ("[" * 100, "nested more than 32 deep"),
        ("- a", "a scenario is a mapping of keys"),
        ("fabric: {leaves: x}", "fabric.leaves: 'x' is not a whole number"),
        ("fabric: {leafs: 1}", "unknown key 'fabric.leafs'; did you mean 'leaves'"),
        ("clock: sundial", "clock: 'sundial' is not valid; valid: 'real' or 'virtual'"),
        ("traffic: [{incast: h99}]", "traffic"),
        ("seed: .inf", "seed"),
        ("? [a]\n: b", "is no key|is not YAML"),
        ('p4: "a\\0b"', "is not a path"),
    ],
)
def test_wrong_scenarios_are_kept_and_explained(bench: Asking, folder: Path, text: str, problem: str) -> None:
    version = bench.ask("read", file="pair.yaml")["version"]
    found = bench.ask("write", file="pair.yaml", text=text, version=version)
    assert (folder / "pair.yaml").read_text(encoding="utf-8") == text
    said = "\n".join(each["text"] for each in found["problems"])
    assert any(each in said for each in problem.split("|")), said
    assert bench.ask("read", file="pair.yaml") == found


def test_a_problem_has_its_key_and_line(bench: Asking) -> None:
    version = bench.ask("read", file="pair.yaml")["version"]
    text = "seed: 1\nfabric:\n  leaves: x\n  spines: -1\ntraffic:\n  - incast: h0\n    bytes_per_sender: lots\n"
    found = bench.ask("write", file="pair.yaml", text=text, version=version)["problems"]
    assert [(each["key"], each["line"]) for each in found] == [("fabric.leaves", 3), ("fabric.spines", 4)]
    text = text.replace("x", "2").replace("-1", "1")
    version = bench.ask("read", file="pair.yaml")["version"]
    (found,) = bench.ask("write", file="pair.yaml", text=text, version=version)["problems"]
    assert (found["key"], found["line"]) == ("traffic[0].bytes_per_sender", 7)
    assert "valid" in found["text"] or "such as" in found["text"] or "size" in found["text"]


def test_a_change_keeps_comments_and_needs_the_latest_version(bench: Asking, folder: Path) -> None:
    scenario = bench.ask("read", file="pair.yaml")
    changes = [{"path": ["fabric", "leaves"], "value": "2"}, {"path": ["name"], "text": "12"}]
    given = {"file": "pair.yaml", "version": scenario["version"], "changes": changes}
    changed = bench.ask("change", **given)
    assert changed["text"] == scenario["text"].replace("leaves: 1", "leaves: 2").replace("name: pair", "name: '12'")
    assert changed["kinds"] == {"fabric": "leaf_spine", "traffic[0]": "incast"}
    assert bench.refused("change", **given)[0] == 409
    assert bench.refused("write", file="pair.yaml", text="", version=scenario["version"])[0] == 409
    assert bench.refused("delete", file="pair.yaml", version=scenario["version"])[0] == 409
    assert (folder / "pair.yaml").read_text(encoding="utf-8") == changed["text"]


@pytest.mark.parametrize(
    "changes",
    [
        None, [], [None], [{}], [{"path": []}], [{"path": [""]}], [{"path": [True]}], [{"path": [-1]}], [{"path": [0]}],
        [{"path": ["a"] * 41}], [{"path": ["seed"], "value": 1}], [{"path": ["seed"], "value": "{"}],
        [{"path": ["seed"], "text": None}], [{"path": ["seed"], "value": "&a [*a]"}], [{"path": ["nothing"]}],
        [{"path": ["seed"], "value": "[" * 50 + "]" * 50}], [{"path": ["seed"]}] * 101,
    ],
    ids=str,
)  # fmt: skip
def test_changes_that_are_none_leave_the_file_as_it_is(bench: Asking, folder: Path, changes: object) -> None:
    before = (folder / "pair.yaml").read_bytes()
    version = bench.ask("read", file="pair.yaml")["version"]
    assert bench.refused("change", file="pair.yaml", version=version, changes=changes)[0] == 400
    assert (folder / "pair.yaml").read_bytes() == before
    assert [each.name for each in folder.iterdir()] == ["pair.yaml"]


def test_scenarios_are_made_copied_renamed_and_deleted(bench: Asking, folder: Path) -> None:
    small = bench.ask("new", file="small.yaml", template="small")
    assert small["problems"] == []
    assert "weft run small.yaml" in small["text"]
    lab = bench.ask("new", file="lab.yml", template="lab:01-allreduce")
    assert lab["problems"] == []
    assert bench.ask("new", file="empty.yaml", template="empty")["text"] == ""
    copy = bench.ask("copy", file="small.yaml", to="copy.yaml")
    assert copy["text"] == small["text"].replace("weft run small.yaml", "weft run copy.yaml") != small["text"]
    assert "is there already" in bench.refused("copy", file="small.yaml", to="lab.yml")[1]
    assert "is there already" in bench.refused("rename", file="small.yaml", to="lab.yml")[1]
    assert "there is no template" in bench.refused("new", file="x.yaml", template="lab:../../etc")[1]
    (folder / "runs/copy-3").mkdir(parents=True)
    assert bench.ask("rename", file="copy.yaml", to="other.yaml")["text"] == copy["text"]
    assert (folder / "runs/other-1").is_dir()
    bench.ask("delete", file="other.yaml", version=copy["version"])
    assert bench.ask("scenarios") == {"scenarios": ["empty.yaml", "lab.yml", "pair.yaml", "small.yaml"]}
    assert (folder / "runs/other-1").is_dir()


NAMES = st.text(st.sampled_from("ab./\\-_~ \0\nyaml:é"), max_size=14).map(lambda text: f"{text}.yaml") | st.text(
    max_size=8
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES)
def test_no_name_writes_outside_the_folder(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir(exist_ok=True)
    folder = Folder(inside)
    with contextlib.closing(folder):
        with contextlib.suppress(BadInputError):
            folder.create(name, "seed: 1\n")
            assert (inside / name).read_text(encoding="utf-8") == "seed: 1\n"
            assert folder.names() == [name]
            folder.delete(name, folder.read(name).version)
        assert list(tmp_path.iterdir()) == [inside]
        assert list(inside.iterdir()) == []


def test_a_folder_that_is_none_and_a_port_that_is_taken_are_refused(folder: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be opened"):
        WorkbenchServer(folder / "nothing", port=0)
    with WorkbenchServer(folder, port=0) as server, pytest.raises(EnvironmentLacksError, match="--port"):
        WorkbenchServer(folder, server.place[1])


def test_the_way_in_is_for_its_user_alone(bench: Asking) -> None:
    path = bench.server.way_in()
    assert bench.token in path.read_text(encoding="utf-8")
    assert path.parent.stat().st_mode & 0o077 == 0
