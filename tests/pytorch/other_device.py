"""A stand-in for a GPU's tensors, where there is no GPU: elements that only copies to and from the CPU reach."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map_only

DEVICE = "meta"
"""PyTorch for CPUs copies to no `cuda` device, be it one like this."""


class DeviceTensor(torch.Tensor):
    """A tensor on another device than the CPU, which keeps its elements, like views of them, in memory.

    Views share memory. `numpy` and `data_ptr` fail, as of a GPU's tensor.
    """

    kept: torch.Tensor

    @staticmethod
    def __new__(cls, kept: torch.Tensor) -> DeviceTensor:
        """Wrap a tensor's memory."""
        made: DeviceTensor = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, kept.size(), strides=kept.stride(), dtype=kept.dtype, device=DEVICE
        )
        made.kept = kept
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do in memory what is asked for; the result is on the device, unless it is a copy to the CPU."""
        to_cpu = func is torch.ops.aten._to_copy.default and torch.device((kwargs or {})["device"]).type == "cpu"
        plain = tree_map_only(cls, lambda each: each.kept, (args, kwargs or {}))
        found = func(*plain[0], **plain[1])
        if to_cpu:
            return found
        if func is torch.ops.aten.copy_.default:
            return args[0]
        return tree_map_only(torch.Tensor, cls, found)
