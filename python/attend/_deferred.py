"""Tensors that are computed when an operation reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

# Methods that read the memory of a tensor without an operator.
_READS = frozenset({Tensor.numpy, Tensor.__array__, Tensor.tolist, Tensor.data_ptr, Tensor.untyped_storage,
                    Tensor.__repr__, Tensor.__format__, Tensor.__reduce_ex__, Tensor.__deepcopy__})


class Deferred(Tensor):
    """A tensor on the CPU that has a shape and a dtype, and no memory: each operation on it computes its numbers."""

    compute: Callable[[], Tensor]

    @staticmethod
    def __new__(cls, sizes: Sequence[int], dtype: torch.dtype, compute: Callable[[], Tensor], **_: Any) -> Deferred:
        return Tensor._make_wrapper_subclass(cls, sizes, dtype=dtype, device="cpu")  # type: ignore[attr-defined]

    def __init__(self, sizes: Sequence[int], dtype: torch.dtype, compute: Callable[[], Tensor]) -> None:
        self.compute = compute

    def computed(self) -> Tensor:
        """The numbers, as an ordinary tensor."""
        return self.compute()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if func in _READS:
                args, kwargs = tree_map(_ordinary, (args, kwargs))
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(_ordinary, (args, kwargs))
        return func(*args, **(kwargs or {}))


def _ordinary(x: Any) -> Any:
    return x.computed() if isinstance(x, Deferred) else x
