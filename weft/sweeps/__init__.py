"""Many runs of one scenario with other parameters: what `weft sweep` and `weft.sweep` do.

`axes` says which values, `plan` which runs, `execution` runs them here or on a cluster of Dask's, `store`
keeps what they found, `table` makes one table of it.
"""

from weft.sweeps.axes import Axis, grid_axis, points_axis, zip_axis
from weft.sweeps.plan import Point, SweepPlan
from weft.sweeps.store import Outcome, State
from weft.sweeps.sweep import SweepResult, run_sweep, sweep

__all__ = [
    "Axis",
    "Outcome",
    "Point",
    "State",
    "SweepPlan",
    "SweepResult",
    "grid_axis",
    "points_axis",
    "run_sweep",
    "sweep",
    "zip_axis",
]
