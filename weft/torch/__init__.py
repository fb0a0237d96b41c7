"""PyTorch over an emulated fabric: `torch.distributed.init_process_group("weft")`.

To import this registers the backend; where PyTorch loads installed backends by itself, nothing need be imported.
"""

from __future__ import annotations

from typing import Any

from weft.torch.settings import DEVICES, Settings

__all__ = ["Settings", "register"]

NAME = "weft"


def register() -> None:
    """Register the backend with PyTorch, if that has `torch.distributed`."""
    import torch.distributed as dist

    if dist.is_available() and not hasattr(dist.Backend, NAME.upper()):
        dist.Backend.register_backend(NAME, _created, extended_api=True, devices=list(DEVICES))


def _created(options: Any, settings: Any) -> Any:
    """Return a process group, as PyTorch asks for it."""
    from weft.torch.process_group import created

    return created(options, settings)


register()
