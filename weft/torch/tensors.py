"""Tensors as the fabric carries them, and back; reductions of types that the fabric does not reduce."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

REDUCED_BY_FABRIC = {torch.float32: "float32", torch.int32: "int32"}
"""Other types are gathered over the fabric, and each rank reduces them itself."""
_HALVES = (torch.float16, torch.bfloat16)
_WORD_BYTES = 4


def check(tensor: Any, what: str) -> None:
    """Raise ValueError for a tensor that cannot be carried."""
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise ValueError(
            f"weft: {what} of a tensor on {tensor.device}, {tensor.layout} (valid: on cpu, torch.strided)"
        )


def elements_of(tensor: Any) -> NDArray[Any]:
    """Return a tensor's elements, flat."""
    found: NDArray[Any] = tensor.detach().reshape(-1).contiguous().numpy()
    return found


def words_of(tensor: Any) -> NDArray[np.int32]:
    """Return a tensor's bytes as int32, the last one padded with zeros."""
    data = tensor.detach().reshape(-1).contiguous().view(torch.uint8).numpy()
    padded = np.zeros(-(-data.size // _WORD_BYTES) * _WORD_BYTES, np.uint8)
    padded[: data.size] = data
    return padded.view(np.int32)


def word_count(elements: int, dtype: torch.dtype) -> int:
    """Return how many words so many elements take."""
    return int(-(-elements * dtype.itemsize // _WORD_BYTES))


def put_words(tensor: Any, words: NDArray[Any]) -> None:
    """Fill a tensor with the bytes of words."""
    tensor.copy_(from_words(words, tensor.numel(), tensor.dtype).view(tensor.shape))


def from_words(words: NDArray[Any], elements: int, dtype: torch.dtype) -> Any:
    """Return the first elements that words hold."""
    data = np.ascontiguousarray(words).view(np.uint8)[: elements * dtype.itemsize]
    # Of its own memory, which is aligned for any type.
    return torch.from_numpy(data.copy()).view(dtype)


def put_elements(tensor: Any, elements: NDArray[Any]) -> None:
    """Fill a tensor with elements of its type."""
    tensor.copy_(torch.from_numpy(np.array(elements)).view(tensor.shape))


def reduced(parts: Sequence[Any], operation: str) -> Any:
    """Return ranks' tensors reduced in order of the ranks; halves are added in float32 and rounded once."""
    dtype = parts[0].dtype
    if operation == "sum":
        wide = [part.float() for part in parts] if dtype in _HALVES else parts
        return reduce(torch.add, wide).to(dtype)
    return reduce(torch.maximum if operation == "max" else torch.minimum, parts)


def averaged(tensor: Any, ranks: int) -> None:
    """Divide a sum by the number of ranks."""
    tensor.div_(ranks)
