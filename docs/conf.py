"""Settings of Sphinx: the documentation as a site, whose pages lie where they lie in the repository.

`make site` builds it into build/site, without network. The source folder is the repository's root, because README.md,
ARCHITECTURE.md and the labs' pages are not below docs/, and pages link to scenarios, programs and pictures.
"""

project = "Weft"
extensions = ["myst_parser"]
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
html_copy_source = False
html_show_sourcelink = False
suppress_warnings = ["myst.header"]  # README's parts begin with small headings
