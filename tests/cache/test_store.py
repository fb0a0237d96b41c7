"""The on-disk cache: whole, checked, bounded entries that only their owner may write."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from weft.cache import Store, cache_directory, remove_cache, version_of

PARTS = {"first": b"\x00\n", "second": b"", "third": bytes(range(256)) * 10}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_directory_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("WEFT_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_directory() == tmp_path / ".cache" / "weft"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory() == tmp_path / ".cache" / "weft"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_directory() == Path("/xdg/weft")
    monkeypatch.setenv("WEFT_CACHE_DIR", "/own")
    assert cache_directory() == Path("/own")


def test_entry_comes_back(folder: Path) -> None:
    store = Store("kind")
    key = store.key("a", "b")
    assert store.read(key) is None
    store.write(key, PARTS)
    assert store.read(key) == PARTS
    assert Store("other").read(key) is None


def test_keys_show_where_parts_end() -> None:
    store = Store("kind")
    assert store.key("ab", "c") != store.key("a", "bc") != store.key("abc")


def test_every_damage_is_a_miss(folder: Path) -> None:
    store = Store("kind")
    key = store.key("a")
    store.write(key, PARTS)
    (file,) = folder.iterdir()
    good = file.read_bytes()
    for cut in range(0, len(good), 97):
        file.write_bytes(good[:cut])
        assert store.read(key) is None
    for at in range(0, len(good), 41):
        file.write_bytes(good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1 :])
        assert store.read(key) is None
    file.write_bytes(good)
    assert store.read(key) == PARTS


def test_what_others_may_write_is_not_trusted(folder: Path) -> None:
    store = Store("kind")
    key = store.key("a")
    store.write(key, PARTS)
    (file,) = folder.iterdir()
    file.chmod(0o666)
    assert store.read(key) is None
    file.chmod(0o600)
    folder.chmod(0o777)
    assert store.read(key) is None
    store.write(store.key("b"), PARTS)
    assert list(folder.iterdir()) == [file]


def test_what_is_there_is_known_without_reading_it(folder: Path) -> None:
    store = Store("thing")
    key = store.key("a")
    assert not store.holds(key)
    store.write(key, {"part": b"content"})
    assert store.holds(key)
    path = store.path(key)
    assert path is not None
    path.chmod(0o666)
    assert not store.holds(key)
    assert store.read(key) is None


def test_entries_are_private_under_any_umask(folder: Path) -> None:
    store = Store("kind")
    before = os.umask(0)
    try:
        store.write(store.key("a"), PARTS)
    finally:
        os.umask(before)
    assert store.read(store.key("a")) == PARTS


def test_longest_unused_entries_go_first(folder: Path) -> None:
    store = Store("kind", entry_limit=3)
    keys = [store.key(str(number)) for number in range(4)]
    for age, key in enumerate(keys[:3]):
        store.write(key, PARTS)
        path = store.path(key)
        assert path is not None
        os.utime(path, (1000 + age, 1000 + age))
    assert store.read(keys[0]) == PARTS  # now the newest
    store.write(keys[3], PARTS)
    assert [store.read(key) is not None for key in keys] == [True, False, True, True]


def test_size_is_bounded(folder: Path) -> None:
    store = Store("kind", size_limit_bytes=10_000)
    for number in range(20):
        store.write(store.key(str(number)), PARTS)
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 10_000


def test_unusable_directory_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    store = Store("kind")
    for setting in (str(occupied / "cache"), ""):
        monkeypatch.setenv("WEFT_CACHE_DIR", setting)
        store.write(store.key("a"), PARTS)
        assert store.read(store.key("a")) is None
    assert remove_cache() == []


def test_concurrent_writers_leave_whole_entries(folder: Path) -> None:
    store = Store("kind", entry_limit=4)
    keys = [store.key(str(number)) for number in range(6)]

    def work(turn: int) -> bool:
        key = keys[turn % len(keys)]
        store.write(key, {"data": key.encode() * 100})
        found = store.read(key)
        return found is None or found["data"] == key.encode() * 100

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(200)))
    assert all(file.suffix == ".entry" for file in folder.iterdir())


def test_removal_leaves_other_files(folder: Path) -> None:
    store = Store("kind")
    store.write(store.key("a"), PARTS)
    (folder / "notes.txt").write_text("mine")
    assert len(remove_cache()) == 1
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    store.write(store.key("a"), PARTS)
    remove_cache()
    assert not folder.exists()


def test_version_follows_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = version_of([tmp_path])
    (tmp_path / "notes.txt").write_text("ignored")
    assert version_of([tmp_path]) == first
    (tmp_path / "a.py").write_text("2")
    second = version_of([tmp_path])
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({first, second, version_of([tmp_path])}) == 3
