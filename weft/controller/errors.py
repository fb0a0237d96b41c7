"""Errors of the controller. Every message names the problem, the value, the valid choices and the place."""

from __future__ import annotations

from weft.errors import Refusal


class ControllerError(Refusal):
    """Base of everything the controller raises on purpose."""


class SettingError(ControllerError, ValueError):
    """A setting (thresholds, unit, address…) is invalid; nothing was sent to a switch."""


class PipelineError(ControllerError):
    """P4Info or device configuration is unreadable or lacks something that the controller programs."""


class JobError(ControllerError, ValueError):
    """An aggregation job is impossible: unknown host, too many children, no slots left, no path to a root."""


class NoSlotsError(JobError):
    """A switch lacks the free slots that an aggregation job requests."""


class LostTreesError(JobError):
    """A failure destroyed an aggregation job's trees while they were programmed; new trees may exist by now."""


class SwitchUnavailableError(ControllerError):
    """A switch does not answer, or the stream to it broke."""


class NotPrimaryError(ControllerError):
    """Another controller is the switch's primary, so the switch would reject writes."""


class RequestRefusedError(ControllerError):
    """The switch rejected a request; the message gives its reason and the first failed update.

    Attributes:
        status: the name of the gRPC status of the first failed update, or of the request; "" if the switch gave none.
    """

    status = ""


class CommandError(SettingError):
    """A command is unknown or a word is invalid; the message has the word and the valid choices."""
