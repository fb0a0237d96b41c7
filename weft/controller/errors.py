"""Errors of the controller. Every message says what was wrong, the value, the valid choices and the place."""

from __future__ import annotations


class ControllerError(Exception):
    """Base of everything the controller raises on purpose."""


class SettingError(ControllerError, ValueError):
    """A setting (thresholds, unit, address…) is not valid; nothing was sent to a switch."""


class PipelineError(ControllerError):
    """P4Info or device configuration cannot be read, or lack something the controller programs."""


class JobError(ControllerError, ValueError):
    """An aggregation job is impossible: unknown host, too many children, no slots left, no path to a root."""


class NoSlotsError(JobError):
    """A switch has not got the slots that an aggregation job wants."""


class LostTreesError(JobError):
    """A failure has taken an aggregation job's trees while they were programmed; there may be others by now."""


class SwitchUnavailableError(ControllerError):
    """A switch does not answer, or the stream to it broke."""


class NotPrimaryError(ControllerError):
    """Another controller is the switch's primary; writing would be refused."""


class RequestRefusedError(ControllerError):
    """The switch refused a request; the message has its reason and the first update that failed."""
