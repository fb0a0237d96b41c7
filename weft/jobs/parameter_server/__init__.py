"""Training with a parameter server: jobs, parts of workers' steps, staleness of weights, convergence of the loss."""

from weft.jobs.parameter_server.all_reduce import AllReduceJob, AllReduceTimes, all_reduce_job
from weft.jobs.parameter_server.job import ParameterServerJob, ServerTimes, parameter_server_job
from weft.jobs.parameter_server.plan import ParameterServerPlan

__all__ = [
    "AllReduceJob",
    "AllReduceTimes",
    "ParameterServerJob",
    "ParameterServerPlan",
    "ServerTimes",
    "all_reduce_job",
    "parameter_server_job",
]
