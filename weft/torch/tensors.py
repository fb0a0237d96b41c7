"""Tensors as the fabric carries them, and back; reductions of types that the fabric does not reduce."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.errors import InvalidValueError
from weft.torch.settings import DEVICES
from weft.traffic.data_types import DataType

REDUCED_BY_FABRIC: dict[torch.dtype, DataType] = {getattr(torch, each): each for each in DataType}
"""Other types are gathered over the fabric, and each rank reduces them itself."""
_COMBINE = {
    "sum": torch.add,
    "average": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
}
_WORD_BYTES = 4


def check(tensor: Any, what: str) -> None:
    """Raise ValueError for a tensor that cannot be carried."""
    if tensor.device.type not in DEVICES or tensor.layout != torch.strided:
        raise InvalidValueError(
            f"weft: {what} of a tensor on {tensor.device}, {tensor.layout}",
            valid=f"on {' or '.join(DEVICES)}, torch.strided",
        )


def elements_of(tensor: Any) -> NDArray[Any]:
    """Return a tensor's elements as the fabric reduces them, flat."""
    return _bytes_of(tensor).view(REDUCED_BY_FABRIC[tensor.dtype].storage)


def words_of(tensor: Any) -> NDArray[np.int32]:
    """Return a tensor's bytes as int32, the last one padded with zeros."""
    data = _bytes_of(tensor)
    padded = np.zeros(-(-data.size // _WORD_BYTES) * _WORD_BYTES, np.uint8)
    padded[: data.size] = data
    return padded.view(np.int32)


def word_count(elements: int, dtype: torch.dtype) -> int:
    """Return how many words so many elements take."""
    return int(-(-elements * dtype.itemsize // _WORD_BYTES))


def put(tensor: Any, array: NDArray[Any]) -> None:
    """Fill a tensor with the bytes of words, or of elements of its type; on a GPU they are there on return."""
    tensor.copy_(first_of(array, tensor.numel(), tensor.dtype).view(tensor.shape))


def first_of(array: NDArray[Any], elements: int, dtype: torch.dtype) -> Any:
    """Return the first elements that words, or elements of that type, hold."""
    data = np.ascontiguousarray(array).view(np.uint8)[: elements * dtype.itemsize]
    # Of its own memory, which is aligned for any type.
    return torch.from_numpy(data.copy()).view(dtype)


def devices_of(outputs: Any) -> list[torch.device]:
    """Return the GPUs on which tensors are, which may stand in lists of lists; the CPU has no index."""
    if isinstance(outputs, torch.Tensor):
        return [outputs.device] if outputs.device.index is not None else []
    return sorted({device for each in outputs for device in devices_of(each)}, key=str)


def reduced(parts: Sequence[Any], operation: str) -> Any:
    """Return ranks' tensors reduced in order of the ranks; averages of integers are rounded towards zero."""
    combined = reduce(_COMBINE[operation], parts)
    if operation != "average":
        return combined
    return torch.div(combined, len(parts), rounding_mode=None if combined.dtype.is_floating_point else "trunc")


def _bytes_of(tensor: Any) -> NDArray[np.uint8]:
    # From a GPU, `cpu` waits for all work of the current stream, which is also what wrote the tensor. So when the call
    # begins nothing of it is left that reads or writes the tensors that results will be put into.
    found: NDArray[np.uint8] = tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy()
    return found
