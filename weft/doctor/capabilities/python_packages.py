"""Optional Python packages: the extras of setup.cfg."""

from __future__ import annotations

from functools import partial

from weft.doctor.capability import Capability, modules
from weft.hints import install_extra


def _extra(extra: str, imported: str, purpose: str, cost: str) -> Capability:
    return Capability(f"extra {extra}", purpose, modules(imported), cost, partial(install_extra, extra))


CAPABILITIES = [
    _extra("demo", "sklearn", "handwritten digits on which labs 15 and 18 train", "those labs do not run"),
    _extra("notebook", "jupyterlab", "weft labs notebooks", "no notebooks; labs run on the command line"),
    _extra("parquet", "pyarrow", "tables of runs as Parquet", "tables are CSV"),
    _extra("png", "cairosvg", "drawings as PNG", "drawings are SVG or HTML"),
    _extra("report", "plotly", "weft report", "no weft report; results.json and tables have its figures"),
    _extra("sweep", "distributed", "weft sweep --scheduler", "sweeps run on this machine only"),
    _extra("torch", "torch", "PyTorch scripts on a fabric (docs/torch.md)", "no weft.torch"),
]
