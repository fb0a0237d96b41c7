"""Settings of Sphinx: the documentation as a site, whose pages lie where they lie in the repository.

`make site` builds it into build/site, without network. The source folder is the repository's root, because README.md,
ARCHITECTURE.md and the labs' pages are not below docs/, and pages link to scenarios, programs and pictures.
"""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

project = "Weft"
extensions = ["myst_parser", "api_reference"]
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
napoleon_use_ivar = True
napoleon_custom_sections = [("Raises, on entering", "params_style")]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "ARCHITECTURE.md",
    "LIMITATIONS.md",
    "CHANGELOG.md",
    "docs/**.md",
    "labs/*/README.md",
    "labs/*/solution.md",
    "examples/README.md",
]
exclude_patterns = ["build", "runs", ".venv", ".venv-shell"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
html_theme = "furo"
html_title = "Weft"
html_static_path = ["site"]
html_css_files = ["weft.css"]
html_show_copyright = False
html_show_search_summary = False  # a page opened from a file may not fetch the others for excerpts
html_copy_source = False
html_show_sourcelink = False
suppress_warnings = ["myst.header"]  # README's parts begin with small headings

# Pages that the sidebar folds away below another. Lists of contents in these pages themselves would show as code in the
# repository's own view.
pages_below = {
    r"labs/[^/]+/README": "solution",
    "docs/howto/README": "*",
    "ARCHITECTURE": "docs/design/*",
}


def add_pages_below(_app: Sphinx, page: str, content: list[str]) -> None:
    """Give a page the hidden contents that `pages_below` names."""
    for pattern, below in pages_below.items():
        if re.fullmatch(pattern, page):
            content[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{below}\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_config_value("pages_below", {}, "env")  # pages are read anew when it changes
    app.connect("source-read", add_pages_below)
