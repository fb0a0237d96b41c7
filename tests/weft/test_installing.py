"""What messages and pages say about installing Weft and what it needs beside itself."""

import configparser
import re
import subprocess
from importlib import metadata

import pytest

from weft.hints import DISTRIBUTION, install_extra
from weft.paths import ROOT


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_nothing_installs_weft_by_name() -> None:
    """On PyPI `weft` is another project, and ours is not registered: only a checkout can be installed."""
    by_name = re.compile(r"pip install [^`\n]*(?<![./\w-])weft(-fabric)?\b(?!/)")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    found = []
    warned = "`pip install weft` would install another project"
    for name in listed.decode().split("\0"):
        if name.endswith((".py", ".md", ".sh", ".yaml", ".cfg", ".toml", "Containerfile")):
            for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
                if by_name.search(line.replace(warned, "")):
                    found.append(f"{name}: {line.strip()}")
    assert found == []


def test_the_distribution_is_that_of_setup_cfg() -> None:
    assert setup_cfg()["metadata"]["name"] == DISTRIBUTION


@pytest.mark.parametrize("extra", ["demo", "notebook", "parquet", "png", "report", "sweep", "torch"])
def test_an_extra_is_installed_by_its_packages(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = setup_cfg()["options.extras_require"][extra].split()
    required = [f'{each}; extra == "{extra}"' for each in named]
    monkeypatch.setattr(metadata, "requires", lambda name: ["click>=8", *required, 'pytest; extra == "test"'])
    assert install_extra(extra) == "pip install " + " ".join(f"'{each}'" for each in named)


def test_a_checkout_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert "setup.cfg" in install_extra("png")
