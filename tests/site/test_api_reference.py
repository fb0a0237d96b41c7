"""The API's pages have every public name, in readable form."""

import importlib.util
import re
from types import ModuleType

import pytest

import weft
import weft.pytest_plugin
import weft.rdma
import weft.topologies
from weft.paths import ROOT

pytest.importorskip("sphinx")


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_reference", ROOT / "docs" / "api_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("module", [weft, weft.rdma, weft.topologies], ids=lambda module: module.__name__)
def test_every_public_name_is_described_once(module: ModuleType, reference: ModuleType) -> None:
    text = reference.public_names(module)
    described = re.findall(
        rf"^\.\. (?:autoclass|autofunction|py:data|py:module):: {module.__name__}\.(\w+)$", text, re.M
    )
    assert sorted(described) == sorted(module.__all__)
    headings = re.findall("^## (.*)$", text, re.M)
    assert len(headings) == len(set(headings))
    assert headings[-1] == "Errors", "a module that declares public names has no group in docs/api_reference.py"


@pytest.mark.parametrize("module", ["weft", "weft.rdma", "weft.topologies"])
def test_a_page_has_the_names_of_each_module(module: str) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")]
    assert sum(f"<!-- names: {module} -->" in page.splitlines() for page in pages) == 1


def test_the_plugin_s_fixtures_marks_and_options_are_described(reference: ModuleType) -> None:
    text = reference.pytest_plugin(weft.pytest_plugin)
    for found in (".. py:data:: fabric\n", "- `fabric(**arguments)`: ", "`host_rate_bps`", "`--weft-coverage DIR`: "):
        assert found in text
    assert ".. autofunction:: weft.pytest_plugin.fabric_of\n" in text


def test_docstrings_become_restructuredtext(reference: ModuleType) -> None:
    lines = ["Sum of `a*b` over |x|*2, as in other_ .", "", "```", "f(*given)", "```", "End."]
    reference.convert_docstring(None, "function", "f", None, None, lines)
    assert lines == [
        r"Sum of ``a*b`` over \|x\|\*2, as in other\_ .",
        "",
        "",
        ".. code-block:: python",
        "",
        "   f(*given)",
        "",
        "End.",
    ]


def test_a_signature_shows_no_path_and_no_section_of_the_builder_s(reference: ModuleType) -> None:
    def function(a: int = 1, p4: object = ROOT) -> None:
        """Do nothing."""

    function.__signature__ = reference.inspect.signature(function)
    reference.shorten_defaults(None, function, False)
    assert str(function.__signature__) == "(a: int = 1, p4: object = ...) -> None"


def test_members_for_weft_itself_are_left_out(reference: ModuleType) -> None:
    device, region = weft.rdma.Device, weft.rdma.MR

    def is_left_out(value: object) -> bool:
        return bool(reference.leave_out_internal(None, "class", "name", value, False, None))

    assert [is_left_out(each) for each in (device.deliver, device.waiting, vars(region)["native"])] == [True] * 3
    assert [is_left_out(each) for each in (device.sleep, device.exchange, weft.Fabric.options)] == [False] * 3
