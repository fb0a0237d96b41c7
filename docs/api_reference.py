"""An extension of Sphinx that writes the API's pages (docs/api/) from the public names themselves.

A comment `<!-- names: MODULE -->` in a page stands for every name in the module's `__all__`, in groups, and
`<!-- pytest plugin: MODULE -->` for the fixtures, marks, options and functions of a plugin. Docstrings are Markdown
with Google's sections; Sphinx reads reStructuredText.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.typing import ExtensionMetadata

from weft.visibility import is_internal

# The headings of groups, by the module that declares a name; the longest that fits counts.
_GROUPS = {
    "weft.run": "Run a fabric",
    "weft.sweeps": "Sweeps",
    "weft.report.plots": "Plots",
    "weft.traffic": "Traffic and transports",
    "weft.engine": "Traffic and transports",
    "weft.traffic.collectives": "Collectives",
    "weft.run.collectives": "Collectives",
    "weft.clocks.user_controller": "Controllers",
    "weft.errors": "Errors",
    "weft.rdma.program": "Programs and devices",
    "weft.rdma.device": "Programs and devices",
    "weft.rdma.connecting": "Connections",
    "weft.rdma.queue_pair": "Queue pairs and completion queues",
    "weft.rdma.completion_queue": "Queue pairs and completion queues",
    "weft.rdma.memory": "Memory",
    "weft.rdma.work": "Work requests",
    "weft.rdma.enums": "Enumerations",
    "weft.rdma.errors": "Errors",
    "weft.topologies.kinds": "Build a fabric",
    "weft.topologies.scale_up": "Build a fabric",
    "weft.topologies.spares": "Build a fabric",
    "weft.topologies.fabric": "The fabric and its parts",
    "weft.topologies.parts": "The fabric and its parts",
    "weft.topologies.link_choice": "Names of links",
    "weft.topologies.paths": "Paths",
    "weft.topologies.descriptions": "Descriptions and drawings",
    "weft.topologies.drawings": "Descriptions and drawings",
    "weft.topologies.draw_shapes": "Descriptions and drawings",
    "weft.topologies.errors": "Errors",
}
_OTHERS = "More"
_NAMES = re.compile(r"^<!-- names: ([\w.]+) -->$", re.MULTILINE)
_PLUGIN = re.compile(r"^<!-- pytest plugin: ([\w.]+) -->$", re.MULTILINE)


def public_names(module: ModuleType) -> str:
    """Return the Markdown of a module's public names, in groups."""
    declared_in = _declaring_modules(module)
    in_order = sorted(module.__all__, key=lambda name: _place(declared_in[name]))
    lines: list[str] = []
    for group, names in itertools.groupby(in_order, key=lambda name: _place(declared_in[name])[1]):
        lines += [f"## {group}", ""]
        for name in names:
            lines += _in_markdown(_directive(module, name, declared_in[name]))
    return "\n".join(lines)


def _place(declaring: str) -> tuple[int, str]:
    """Return the place and the heading of the group of names that a module declares."""
    found = [prefix for prefix in _GROUPS if declaring == prefix or declaring.startswith(f"{prefix}.")]
    if not found:
        return len(_GROUPS), _OTHERS
    heading = _GROUPS[max(found, key=len)]
    package = ".".join(declaring.split(".")[:2])
    # Several packages have a group of errors, the last one of each.
    place = next(
        number
        for number, (prefix, other) in enumerate(_GROUPS.items())
        if other == heading and (prefix.startswith(package) or heading != _GROUPS["weft.errors"])
    )
    return place, heading


def _declaring_modules(module: ModuleType) -> dict[str, str]:
    """Return the module that declares each public name; for a value, which names no module, the imports say it."""
    tree = ast.parse(inspect.getsource(module))
    imported = {
        alias.asname or alias.name: str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found = {}
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            found[name] = value.__name__
        elif inspect.isclass(value) or inspect.isroutine(value):
            found[name] = value.__module__
        else:
            found[name] = imported.get(name, module.__name__)
    return found


def _directive(module: ModuleType, name: str, declaring: str) -> Iterator[str]:
    """Yield the directive of one name."""
    full, value = f"{module.__name__}.{name}", getattr(module, name)
    if inspect.ismodule(value):
        yield from (f".. py:module:: {value.__name__}", "", f"``{value.__name__}``", f"   {value.__doc__}")
    elif inspect.isclass(value):
        yield f".. autoclass:: {full}"
        yield "   :members:"
        yield f"   :inherited-members: {', '.join(_bases_described_elsewhere(value))}"
        if issubclass(value, enum.Enum):
            yield "   :undoc-members:"
    elif inspect.isroutine(value):
        yield f".. autofunction:: {full}"
    else:
        yield f".. py:data:: {full}"
        yield f"   :value: {value!r}"
        yield ""
        for line in ModuleAnalyzer.for_module(declaring).find_attr_docs().get(("", name), []):
            yield f"   {as_rst(line)}"


def _bases_described_elsewhere(value: type) -> list[str]:
    """Return the names of base classes that are public, or not Weft's: their members need no second description."""
    import weft
    import weft.rdma
    import weft.topologies

    public = {*weft.__all__, *weft.rdma.__all__, *weft.topologies.__all__}
    bases = [base for base in value.__mro__[1:] if base.__name__ in public or not base.__module__.startswith("weft.")]
    return [base.__name__ for base in bases]


def pytest_plugin(module: ModuleType) -> str:
    """Return the Markdown of a pytest plugin: fixtures, marks, options, functions."""
    from weft.scenario.keywords import FabricMark

    recorder = _Recorder()
    module.pytest_addoption(recorder)
    module.pytest_configure(recorder)
    lines = ["## Fixtures", ""]
    for name, value in vars(module).items():
        if type(value).__name__ == "FixtureFunctionDefinition":
            text = inspect.cleandoc(value.__doc__ or inspect.unwrap(value).__doc__ or "")
            lines += _in_markdown([f".. py:data:: {name}", "", *(f"   {as_rst(line)}" for line in text.splitlines())])
    arguments = ", ".join(f"`{name}`" for name in FabricMark.__annotations__)
    lines += ["## Marks", "", *recorder.marks, "", f"Arguments: {arguments}.", ""]
    lines += ["## Options", "", *recorder.options, "", "## Functions", ""]
    for name, value in vars(module).items():
        is_own = inspect.isfunction(value) and value.__module__ == module.__name__
        if is_own and not name.startswith(("_", "pytest_")):
            lines += _in_markdown([f".. autofunction:: {module.__name__}.{name}"])
    return "\n".join(lines)


class _Recorder:
    """Stands in for pytest's parser and configuration, and writes down what a plugin declares."""

    def __init__(self) -> None:
        self.options: list[str] = []
        self.marks: list[str] = []

    def addoption(self, *names: str, **attributes: Any) -> None:
        value = f" {attributes['metavar']}" if "metavar" in attributes else ""
        self.options.append(f"- `{', '.join(names)}{value}`: {attributes['help']}")

    def addinivalue_line(self, _name: str, line: str) -> None:
        mark, _, text = line.partition(": ")
        self.marks.append(f"- `{mark}`: {text}")


def _in_markdown(lines: Iterator[str] | list[str]) -> list[str]:
    return ["```{eval-rst}", *lines, "```", ""]


def add_names(app: Sphinx, page: str, content: list[str]) -> None:
    """Put the names in place of a page's comments."""
    for pattern, made in ((_NAMES, public_names), (_PLUGIN, pytest_plugin)):
        for name in pattern.findall(content[0]):
            module = importlib.import_module(name)
            assert module.__file__ is not None
            # A new public name changes the page, although the page's own file stays as it is.
            app.env.note_dependency(Path(module.__file__), docname=page)
        content[0] = pattern.sub(lambda found: made(importlib.import_module(found[1])), content[0])  # noqa: B023


def as_rst(line: str) -> str:
    """Return a line of a docstring outside of code as reStructuredText, in which `*`, `|` and `_` are no marks."""
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(
        f"`{part}`" if part.startswith("`") and len(part) > 1 else re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", part)
        for part in parts
    )


def convert_docstring(_app: Sphinx, what: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Make reStructuredText of a docstring in Markdown, in place."""
    # Napoleon takes the words before a colon in an attribute's first line for its type.
    made: list[str] = [""] if what in ("attribute", "data", "property") else []
    in_code = False
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip().startswith("```"):
            in_code = not in_code
            made += ["", f"{indent}.. code-block:: python", ""] if in_code else [""]
        else:
            made.append(f"   {line}" if in_code and line else line if in_code else as_rst(line))
    lines[:] = made


def leave_out_internal(
    _app: Sphinx, _what: str, _name: str, value: object, _skip: bool, _options: object
) -> bool | None:
    """Leave out the members that users must not call (`weft.visibility.internal`)."""
    return True if is_internal(value) else None


class _Written:
    """A default that a signature shows by these words."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def shorten_defaults(_app: Sphinx, value: Any, _is_bound: bool) -> None:
    """Have a signature show `...` for defaults that are no literals: sections, functions, paths of this machine."""
    if "__signature__" not in vars(value):
        return
    parameters = [
        each.replace(default=_Written("..."))
        if each.default is not each.empty and not isinstance(each.default, int | float | str | None)
        else each
        for each in value.__signature__.parameters.values()
    ]
    value.__signature__ = value.__signature__.replace(parameters=parameters)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("source-read", add_names)
    app.connect("autodoc-before-process-signature", shorten_defaults)
    app.connect("autodoc-skip-member", leave_out_internal)
    app.connect("autodoc-process-docstring", convert_docstring, priority=400)  # before napoleon's, which has 500
    return {"parallel_read_safe": True}
