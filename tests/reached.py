"""The tests that a change can reach: `python -m tests.reached BASE` prints their files, and why on standard error.

The change is everything since the commit at which HEAD left BASE, uncommitted and untracked files included. A file is
reached by

- imports, direct or not, wherever in a module they are: also those by name (`weft/cli.py`), those of a package's
  modules one by one (`weft/registry.py`), and commands (`python -m weft`);
- the conftest.py of its folder and of those above;
- folders, for files that are no modules (pages, scenarios, programs, scripts): by modules with a string that names the
  file's top folder, and in `tests/` and `weft/` by those next to it or above it.

C++, settings of the build and of pytest, and a file that nothing names select all tests.

pytest-testmon knows from a traced run which lines a test ran. It is not used: half of these tests start processes, run
C++ or read P4, pages and scenarios, which it does not trace, and it needs a whole run under a tracer first.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
TESTS = "tests"
EVERYTHING = ("engine/", "setup.py", "setup.cfg", "pyproject.toml", "tests/conftest.py", "weft/engine/")
"""Beginnings of the paths on which all tests depend, or nobody knows which: the engine is in every run."""
PATHS = "weft/paths.py"
ALWAYS = "tests/test_house.py"
_FULL_NAME = re.compile(r"[a-z_]+(\.\w+)+")
_RUN_AS_MODULE = re.compile(r"-m ([\w.]+)")
_RUN_AS_SCRIPT = re.compile(r"\bbin/(\w+)\b")
_PATTERN = re.compile(r"[\w.-]*\*[\w.-]*\.\w+")
_IMPORTED = (".py", "/__init__.py")
_RUN = (".py", "/__main__.py")
_SHOWN = 3


@dataclass(frozen=True)
class Source:
    """A Python file by its text.

    Attributes:
        path: from the root of the tree.
        eager: full names of the modules, or of what is in them, that import statements name.
        late: full names of modules in strings, as those that are imported on demand have.
        commands: modules and programs that it runs.
        names: names of folders and files, and patterns for them, in strings.
        imports_siblings: whether it may import all modules of its package by name.
        names_late: a package's names, each with the module that has it and is imported on demand.
        constants: names of folders and files in the value of each of its constants.
    """

    path: str
    eager: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    imports_siblings: bool = False
    names_late: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, frozenset[str]] = field(default_factory=dict)


def source_of(path: str, text: str) -> Source:
    """Read a Python file; one that is no Python, as some tests want, imports nothing."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return Source(path)
    eager: set[str] = set()
    strings: set[str] = set()
    commands: set[str] = set()
    names_late: dict[str, str] = {}
    imports_siblings = False
    for node in _walk(tree):
        if isinstance(node, ast.Import):
            eager |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(path, node)
            eager |= {f"{module}.{alias.name}" for alias in node.names}
            imports_siblings |= module == "weft.registry"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
            commands |= {*_RUN_AS_MODULE.findall(node.value), *_RUN_AS_SCRIPT.findall(node.value)}
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            commands |= set(_run_by(node.elts))
        elif isinstance(node, ast.Call):
            commands |= set(_run_by(node.args))
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "import_module" and not (node.args and isinstance(node.args[0], ast.Constant)):
                imports_siblings |= path.count("/") > 1  # at the top, files or their callers name modules in full
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    names_late[str(key.value)] = str(value.value)
    late = {each for each in strings if _FULL_NAME.fullmatch(each)}
    return Source(
        path,
        frozenset(eager),
        frozenset(late),
        frozenset(commands),
        _names_in(strings),
        imports_siblings,
        names_late,
        _constants(tree),
    )


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but docstrings and those that only type checkers see."""
    waiting: deque[ast.AST] = deque([tree])
    while waiting:
        node = waiting.popleft()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting.extend(node.orelse)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting.extend(ast.iter_child_nodes(node))


def _names_in(strings: Iterable[str]) -> frozenset[str]:
    """Return the parts of paths: of a whole string, and of words in commands and other texts that have a slash."""
    found: set[str] = set()
    for text in strings:
        words = text.split()
        for word in words if len(words) > 1 else [text]:
            if len(words) == 1 or "/" in word:
                found |= {part.strip("`'\"(),:;") for part in word.split("/")}
    return frozenset(found)


def _constants(tree: ast.Module) -> dict[str, frozenset[str]]:
    """Return the names that each constant of a module has in its value, and in those constants that it is made of."""
    found: dict[str, frozenset[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            strings = {
                each.value
                for each in ast.walk(node.value)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
            used = [found.get(each.id, frozenset()) for each in ast.walk(node.value) if isinstance(each, ast.Name)]
            found[node.targets[0].id] = _names_in(strings).union(*used)
    return found


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = PurePosixPath(path).parts[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def _run_by(words: Iterable[ast.expr]) -> Iterator[str]:
    """Return the module of a command line (`"-m", "weft"`), or the program (`bin / "weft"` is found by its string)."""
    texts = [each.value if isinstance(each, ast.Constant) else None for each in words]
    yield from (after for before, after in pairwise(texts) if before == "-m" and isinstance(after, str))


class Graph:
    """Which file depends on which, for the files of a tree given by path, from its root, and text."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.sources = {path: source_of(path, text) for path, text in texts.items()}
        folders = {str(PurePosixPath(path).parent) for path in texts if path.startswith(f"{TESTS}/")}
        # Folders whose modules are imported by their bare names (pyproject.toml, conftest.py).
        self._roots = ["", *sorted(f"{each}/" for each in folders | {TESTS, "benchmarks"})]

    @cached_property
    def dependants(self) -> dict[str, set[str]]:
        """Per file those that depend on it directly."""
        found: dict[str, set[str]] = {}
        for path, source in self.sources.items():
            for each in self._needed_by(source):
                found.setdefault(each, set()).add(path)
        return found

    def _needed_by(self, source: Source) -> set[str]:
        needed = self._conftests(source.path)
        for name in source.eager:
            needed |= self._imported(source, name)
        is_package = source.path.endswith("/__init__.py")
        if not is_package:  # what a package imports late is for those that ask it for the name
            needed |= self._imported_late(source)
        return needed - {source.path}

    def _imported_late(self, source: Source) -> set[str]:
        needed: set[str] = set()
        for name in source.late:
            for path in self._files_of(source, name):
                needed.add(path)
                if path.endswith("/__init__.py"):
                    needed |= self._modules_in(path)
        for name in source.commands:
            needed |= self._files_of(source, name, _RUN)
        needed |= self._parents(needed)
        if source.imports_siblings:
            needed |= self._modules_in(source.path)
        return needed

    def _imported(self, source: Source, name: str) -> set[str]:
        """Files that `import name`, or `from package import name`, loads."""
        found = self._files_of(source, name)
        package, _, last = name.rpartition(".")
        if found or not package:
            holders = found
        else:
            holders = self._files_of(source, package)
            found = set(holders)
        for holder in tuple(holders):
            if not holder.endswith("/__init__.py"):
                continue
            package_source = self.sources[holder]
            late = package_source.names_late.get(last)
            if late is not None and (files := self._files_of(package_source, late)):
                found |= files
            elif package_source.late or package_source.imports_siblings:
                found |= self._imported_late(package_source)
        return found | self._parents(found)

    def _files_of(self, source: Source, name: str, endings: Sequence[str] = _IMPORTED) -> set[str]:
        """Files of a module by its full name, or by its bare one next to the file that imports it or in a root."""
        stem = name.replace(".", "/")
        own = PurePosixPath(source.path).parent
        roots = [*self._roots, f"{own}/"] if own.parts else self._roots
        return {f"{root}{stem}{ending}" for root in roots for ending in endings} & self.sources.keys()

    def _parents(self, paths: Iterable[str]) -> set[str]:
        """The packages that are imported on the way; what those import late is none of this."""
        found = {f"{parent}/__init__.py" for path in paths for parent in PurePosixPath(path).parents if parent.name}
        return found & self.sources.keys()

    def _modules_in(self, path: str) -> set[str]:
        folder = str(PurePosixPath(path).parent) + "/"
        return {each for each in self.sources if each.startswith(folder)}

    def _conftests(self, path: str) -> set[str]:
        found = {f"{parent}/conftest.py" for parent in PurePosixPath(path).parents}
        return found & self.sources.keys() if is_test(path) else set()

    def readers(self, path: str) -> set[str]:
        """Modules that may read a file that is no module."""
        parts = PurePosixPath(path).parts
        found: set[str] = set()
        if parts[0] in (TESTS, "weft"):
            folders = {str(each) for each in PurePosixPath(path).parents if len(each.parts) > 1}
            found |= {each for each in self.sources if str(PurePosixPath(each).parent) in folders}
        for each, source in self.sources.items():
            # Weft reads its own files, and others by constants; in its messages it names any.
            names = self._constants_of(source)
            if parts[0] == "weft" or not each.startswith("weft/"):
                names |= source.names
            if parts[0] == "weft":
                reads = not names.isdisjoint(parts[1:-1])
            elif parts[0] == TESTS:
                reads = parts[-2] in names
            elif len(parts) > 1:
                reads = parts[0] in names
            else:
                reads = path in names or any(fnmatch(path, name) for name in names if _PATTERN.fullmatch(name))
            if reads:
                found.add(each)
        return found

    def _constants_of(self, source: Source) -> frozenset[str]:
        """Names in those constants of weft/paths.py that a module imports."""
        constants = self.sources[PATHS].constants if PATHS in self.sources else {}
        imported = (name.removeprefix("weft.paths.") for name in source.eager)
        return frozenset[str]().union(*(constants.get(name, ()) for name in imported))


def is_test(path: str) -> bool:
    """Return whether pytest collects tests from a file."""
    return path.startswith(f"{TESTS}/") and PurePosixPath(path).name.startswith("test_")


@dataclass(frozen=True)
class Reached:
    """Why tests are chosen: per test file the files from the changed one to it; `everything` says why all are."""

    chains: Mapping[str, tuple[str, ...]]
    everything: str | None = None


def reached(graph: Graph, changed: Iterable[str]) -> Reached:
    """Return the test files that changed files reach."""
    chains: dict[str, tuple[str, ...]] = {}
    waiting: deque[str] = deque()
    for path in sorted(changed):
        if path.startswith(EVERYTHING):
            return Reached({}, f"{path} is in every run, or nobody knows in which")
        begins = {path} if path.endswith(".py") else set()
        if not path.endswith(".py") or not path.startswith(("weft/", f"{TESTS}/", "fuzz/")):
            begins |= graph.readers(path)  # benchmarks and examples are run as well
        if not begins:
            return Reached({}, f"{path}: no module names it")
        for each in sorted(begins):
            if each not in chains:
                chains[each] = (each,) if each == path else (path, each)
                waiting.append(each)
    while waiting:
        path = waiting.popleft()
        for each in sorted(graph.dependants.get(path, ())):
            if each not in chains:
                chains[each] = (*chains[path], each)
                waiting.append(each)
    return Reached({path: chain for path, chain in sorted(chains.items()) if is_test(path)})


def changed_since(base: str, root: Path = ROOT) -> list[str]:
    """Return the files changed since HEAD left a commit, deleted, uncommitted and untracked ones included."""
    origin = _git(root, "merge-base", base, "HEAD")[0]
    tracked = _git(root, "diff", "--name-only", "--no-renames", "-z", origin)
    return sorted({*tracked, *_git(root, "ls-files", "--others", "--exclude-standard", "-z")})


def python_files(root: Path = ROOT) -> dict[str, str]:
    """Return the text of each Python file that Git knows or would take."""
    names = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.py")
    return {name: (root / name).read_text(encoding="utf-8") for name in names if (root / name).is_file()}


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return [each for each in re.split(r"[\0\n]", done.stdout) if each]


def main(base: str) -> None:
    """Print the test files that the change since `base` reaches, and why."""
    changed = changed_since(base)
    graph = Graph(python_files())
    found = reached(graph, changed)
    tests = [path for path in found.chains if (ROOT / path).is_file()]
    total = sum(map(is_test, graph.sources))
    print(f"{len(changed)} files changed since {base}", file=sys.stderr)
    if found.everything:
        print(f"all tests: {found.everything}", file=sys.stderr)
        print(TESTS)
        return
    print(f"{len(tests)} of {total} test files, and {ALWAYS}:", file=sys.stderr)
    for path in tests:
        *way, _ = found.chains[path]
        shown = way if len(way) <= _SHOWN else [way[0], "…", *way[-(_SHOWN - 1) :]]
        print(f"  {path}: {' → '.join(shown) or 'changed'}", file=sys.stderr)
    print(*sorted({*tests, ALWAYS}), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
