"""Checks of arguments. Each error names the argument, what it is and what it must be."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import torch
from torch import Tensor

STORED = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def arithmetic(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the kernels' arithmetic: float64 for float64, otherwise float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def shape(x: Tensor) -> str:
    return "[" + ", ".join(str(n) for n in x.shape) + "]"


def without_autocast() -> contextlib.AbstractContextManager:
    """Keeps the dtypes of what is computed within."""
    return torch.autocast("cpu", enabled=False) if torch.is_autocast_enabled("cpu") else contextlib.nullcontext()


def check_tensor(name: str, x: object) -> Tensor:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} is {type(x).__name__}; it must be a tensor")
    if x.layout != torch.strided:
        raise ValueError(f"{name} has layout {x.layout}; it must be dense (torch.strided)")
    if x.device.type not in ("cpu", "meta"):
        raise RuntimeError(f"{name} is on {x.device}; attend computes on the CPU only: move it by .cpu()")
    return x


def check_stored(name: str, x: object) -> Tensor:
    tensor = check_tensor(name, x)
    if tensor.dtype not in STORED:
        raise ValueError(f"{name} has dtype {tensor.dtype}; it must be float32, float64, bfloat16 or float16")
    return tensor


def check_parameter(name: str, x: object, like: Tensor) -> Tensor:
    """A tensor with a gradient, in the dtype of the arithmetic of `like`."""
    tensor = check_tensor(name, x)
    wanted = arithmetic(like.dtype)
    if not tensor.dtype.is_floating_point:
        raise ValueError(f"{name} has dtype {tensor.dtype}; it must be {wanted}")
    if tensor.dtype in (like.dtype, wanted) or torch.is_autocast_enabled("cpu"):
        return tensor.to(wanted)
    raise ValueError(f"{name} has dtype {tensor.dtype}, query {like.dtype}; they must match")


def check_integers(name: str, x: object, sizes: Sequence[int] | None = None) -> Tensor:
    """An int64 tensor without a gradient, contiguous."""
    tensor = check_tensor(name, x)
    if tensor.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} has dtype {tensor.dtype}; it must be int64")
    if sizes is not None and tuple(tensor.shape) != tuple(sizes):
        raise ValueError(f"{name} has shape {shape(tensor)}; it must have shape {list(sizes)}")
    return tensor.to(torch.int64).contiguous()


def check_broadcast(name: str, x: Tensor, sizes: Sequence[int]) -> None:
    own = (1,) * (len(sizes) - x.dim()) + tuple(x.shape)
    if len(own) != len(sizes) or any(a not in (1, b) for a, b in zip(own, sizes)):
        raise ValueError(f"{name} has shape {shape(x)}; it must broadcast to {list(sizes)}")


def check_no_gradient(name: str, x: Tensor) -> None:
    if x.requires_grad:
        raise ValueError(f"{name} requires a gradient, which a scope cannot have; pass {name}.detach()")


def check_count(name: str, x: object, least: int = 0) -> int:
    if isinstance(x, bool) or not isinstance(x, (int, torch.SymInt)):
        raise ValueError(f"{name} is {x!r}; it must be a whole number")
    if x < least:
        raise ValueError(f"{name} is {x}; it must be {least} or more")
    return x  # type: ignore[return-value]
