"""The aggregation job of a fabric's hosts: joined before a reduction in the network, left after a failed one."""

from __future__ import annotations

from weft.clocks.endpoint_settings import default_slot_count
from weft.clocks.lab import Lab
from weft.controller.errors import JobError
from weft.controller.jobs import JobMembership
from weft.errors import BadInputError, CheckFailedError
from weft.run.algorithms import objection_to_nics
from weft.run.spare_hosts import members
from weft.traffic.commands import Membership
from weft.traffic.control import EndpointGroup

JOB_ID = 1


class AggregationJob:
    """A job of all hosts over the planes that are in use. It is kept as long as its trees are."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._epoch: int | None = None
        self._planes: tuple[int, ...] = ()

    @property
    def slot_count(self) -> int:
        """The slots of the option, or two bandwidth-delay products."""
        options = self._lab.options
        return options.slots or default_slot_count(
            self._lab.fabric, options.ip_version, options.switching.latency
        )

    def join(self, endpoints: EndpointGroup) -> None:
        """Have the hosts join the job, unless they have joined it and its trees are the present ones.

        Raises:
            BadInputError: they have not one NIC a plane. CheckFailedError: links that are down leave no tree.
            JobError: there is none without that.
        """
        if self._is_current():
            return
        if objection := objection_to_nics(self._lab.fabric):
            raise BadInputError(objection)
        self.leave()
        hosts = members(self._lab.fabric, endpoints)
        in_use = self._lab.operations.planes_in_use
        try:
            memberships = self._lab.controller.add_job(
                JOB_ID, hosts, self.slot_count, in_use, ip_version=self._lab.options.ip_version
            )
        except JobError as error:
            failures = self._lab.controller.controller.failures
            down = sorted(
                self._lab.fabric.link_name(self._lab.fabric.link_at(min(ends))) for ends in failures.links
            )
            if not down:
                raise
            raise CheckFailedError(f"{error}; links that are down: {', '.join(down)}") from error
        self._epoch, self._planes = memberships[hosts[0]][0].epoch, in_use
        endpoints.join(
            {rank: [host_membership(each) for each in memberships[name]] for rank, name in enumerate(hosts)}
        )

    def has_moved(self) -> bool:
        """Return whether a failure has changed or taken the trees that the hosts have joined."""
        return self._epoch is not None and not self._is_joined()

    def _is_joined(self) -> bool:
        """Return whether the job's trees are those that the hosts know: a failure gives it others in a new epoch."""
        return self._epoch is not None and self._lab.controller.job_epoch(JOB_ID) == self._epoch

    def _is_current(self) -> bool:
        """Return whether besides that nothing the job uses has been taken out of use, which moves no tree by itself."""
        return (
            self._is_joined()
            and self._planes == self._lab.operations.planes_in_use
            and not self._lab.controller.job_uses_avoided(JOB_ID)
        )

    def leave(self) -> None:
        """Remove the job, if there is one."""
        # There may be one that no host knows of after an interruption.
        if self._epoch is None and self._lab.controller.job_epoch(JOB_ID) is None:
            return
        self._epoch = None
        self._lab.controller.discard_job(JOB_ID)


def host_membership(membership: JobMembership) -> Membership:
    """Return what a host must know of its part in a job."""
    return Membership(
        plane=membership.plane,
        job_id=membership.job_id,
        epoch=membership.epoch,
        q_key=membership.q_key,
        rank=membership.rank,
        worker_count=membership.worker_count,
        slot_count=membership.slot_count,
        aggregation_address=str(membership.aggregation_address),
        aggregation_mac=membership.aggregation_mac,
        group_address=str(membership.group_address),
    )
