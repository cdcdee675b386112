"""The recurrences of transformers' models by the kernels: functions with its names, arguments and results."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._checks import STORED, arithmetic
from .recurrence import causal_convolution, linear_recurrence

SILU = ("silu", "swish")


def _offsets(seq_idx: Tensor | None, cu_seq_lens: Tensor | None) -> Tensor | None:
    """First tokens of packed sequences and the end, from the number of the sequence of each token."""
    if seq_idx is None:
        return cu_seq_lens
    if seq_idx.shape[0] != 1:
        raise ValueError(f"seq_idx has {seq_idx.shape[0]} batch entries; packed sequences must be in one")
    changes = torch.nonzero(seq_idx[0].diff()).flatten() + 1
    ends = changes.new_tensor([0]), changes, changes.new_tensor([seq_idx.shape[1]])
    return torch.cat(ends)


def delta_rule(query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, *,
               initial_state: Tensor | None = None, output_final_state: bool = False,
               use_qk_l2norm_in_kernel: bool = False, cu_seqlens: Tensor | None = None, chunk_size: int = 64,
               **_: Any) -> tuple[Tensor, Tensor | None]:
    """The gated delta rule, or KDA if g has an axis of rows. All tensors are [batch, tokens, heads, ...]."""
    kept = arithmetic(value.dtype)
    output, state = linear_recurrence(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), decay=g.transpose(1, 2).to(kept),
        strength=beta.transpose(1, 2).to(kept), delta=True, l2_normalise=use_qk_l2norm_in_kernel,
        initial=None if initial_state is None else initial_state.to(kept), offsets=cu_seqlens)
    return output.transpose(1, 2).contiguous(), state if output_final_state else None


def _step_sizes(dt: Tensor, dt_bias: Tensor | None, dt_softplus: bool, limit: tuple[float, float]) -> Tensor:
    dt = dt if dt_bias is None else dt + dt_bias.to(dt.dtype)
    dt = torch.nn.functional.softplus(dt) if dt_softplus else dt
    return dt.clamp(*limit)


def mamba2_scan(hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, chunk_size: int = 0,
                D: Tensor | None = None, dt_bias: Tensor | None = None, initial_states: Tensor | None = None,
                dt_softplus: bool = False, dt_limit: tuple[float, float] = (0.0, float("inf")),
                return_final_states: bool = False, seq_idx: Tensor | None = None, cu_seq_lens_q: Tensor | None = None,
                **_: Any) -> Tensor | tuple[Tensor, Tensor]:
    """Mamba-2 (Dao and Gu 2024): hidden_states [batch, tokens, heads, depth], dt [batch, tokens, heads], A and D
    [heads], B and C [batch, tokens, groups, rows], states [batch, heads, depth, rows]."""
    kept = arithmetic(hidden_states.dtype)
    x = hidden_states.to(kept)
    steps = _step_sizes(dt, dt_bias, dt_softplus, dt_limit).to(kept).transpose(1, 2)
    initial = None if initial_states is None else initial_states.to(kept).transpose(2, 3)
    output, state = linear_recurrence(C.to(kept).transpose(1, 2), B.to(kept).transpose(1, 2), x.transpose(1, 2),
                                      decay=steps * A.to(kept).view(1, -1, 1), strength=steps, scale=1.0,
                                      initial=initial, offsets=_offsets(seq_idx, cu_seq_lens_q))
    output = output.transpose(1, 2).contiguous()
    if D is not None:
        output = output + D.unsqueeze(-1) * x
    return (output, state.transpose(2, 3)) if return_final_states else output


def mamba2_step(state: Tensor, hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor,
                D: Tensor | None = None, dt_bias: Tensor | None = None, dt_softplus: bool = False,
                z: Tensor | None = None, **_: Any) -> Tensor:
    """One token of mamba2_scan; dt, A, D and dt_bias repeat the numbers of a head. `state` is updated in place."""
    def of_head(x: Tensor | None) -> Tensor | None:
        return None if x is None else x[:, 0]

    decay = A[:, 0, 0]
    output, last = mamba2_scan(hidden_states.unsqueeze(1), dt[:, None, :, 0], decay, B.unsqueeze(1), C.unsqueeze(1),
                               D=of_head(D), dt_bias=of_head(dt_bias), dt_softplus=dt_softplus, initial_states=state,
                               return_final_states=True)
    state.copy_(last)
    output = output.squeeze(1)
    output = output if z is None else output * torch.nn.functional.silu(z)
    return output.to(hidden_states.dtype)


def convolution(hidden_states: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None,
                seq_idx: Tensor | None = None, cu_seq_lens_q: Tensor | None = None, **_: Any) -> Tensor:
    """The causal convolution of [batch, channels, tokens], per packed sequence."""
    kept = arithmetic(hidden_states.dtype)
    weight, bias = weight.to(kept), None if bias is None else bias.to(kept)
    x = hidden_states.transpose(1, 2)
    offsets = _offsets(seq_idx, cu_seq_lens_q)
    parts = [x] if offsets is None else x.tensor_split(offsets[1:-1].tolist(), 1)
    found = [causal_convolution(part, weight, bias, silu=activation in SILU)[0] for part in parts]
    return (found[0] if len(found) == 1 else torch.cat(found, 1)).transpose(1, 2)


def convolution_step(hidden_states: Tensor, conv_state: Tensor, weight: Tensor, bias: Tensor | None = None,
                     activation: str | None = None, **_: Any) -> Tensor:
    """The convolution of tokens that follow `conv_state` [batch, channels, inputs], which is updated in place."""
    kept = arithmetic(hidden_states.dtype)
    width = weight.shape[-1]
    inputs = conv_state.to(hidden_states.dtype)
    before = inputs[..., inputs.shape[-1] - (width - 1):].transpose(1, 2)
    found, _ = causal_convolution(hidden_states.transpose(1, 2), weight.to(kept), None if bias is None else bias.to(kept),
                                  before, silu=activation in SILU)
    conv_state.copy_(torch.cat([inputs, hidden_states], -1)[..., -inputs.shape[-1]:])
    return found.transpose(1, 2)


def _is_silu(activation: str | None = None, **_: Any) -> bool:
    return activation is None or activation in SILU


def _is_step(conv_state: Tensor, weight: Tensor, activation: str | None = None, **_: Any) -> bool:
    return _is_silu(activation) and conv_state.shape[-1] >= weight.shape[-1] - 1


def _is_per_head(dt: Tensor, A: Tensor, **_: Any) -> bool:
    return A.stride()[1:] == (0, 0) and dt.stride(2) == 0


def _always(**_: Any) -> bool:
    return True


# By the names of transformers: our function, and whether it takes the arguments.
REPLACEMENTS: dict[str, tuple[Callable, Callable[..., bool]]] = {
    "torch_chunk_gated_delta_rule": (delta_rule, _always),
    "torch_recurrent_gated_delta_rule": (delta_rule, _always),
    "chunk_kimi_delta_attention": (delta_rule, _always),
    "recurrent_kimi_delta_attention": (delta_rule, _always),
    "mamba2_chunk_scan": (mamba2_scan, _always),
    "mamba2_selective_state_update": (mamba2_step, _is_per_head),
    "causal_conv1d_fn": (convolution, _is_silu),
    "causal_conv1d_update": (convolution_step, _is_step),
}


def replacement(original: Callable) -> Callable:
    """Our function for one of transformers, which takes the calls that ours does not."""
    ours, fits = REPLACEMENTS[original.__name__]
    names = list(inspect.signature(original).parameters)

    @functools.wraps(original)
    def replaced(*given: Any, **options: Any) -> Any:
        named = {**dict(zip(names, given)), **options}
        tensors = [x for x in named.values() if isinstance(x, Tensor) and x.dtype.is_floating_point]
        on_cpu = all(x.device.type == "cpu" and x.dtype in STORED for x in tensors)
        if on_cpu and fits(**named) and not torch.jit.is_tracing():
            return ours(**named)
        return original(*given, **options)

    replaced.original = original  # type: ignore[attr-defined]
    return replaced


def replace_recurrences() -> None:
    """Replaces the functions in the modelling modules that are imported, and in each that is imported later."""
    from transformers import integrations
    from transformers.integrations import hub_kernels

    decorate = hub_kernels.use_kernel_func_from_hub_with_fallback
    if hasattr(decorate, "original"):
        return

    @functools.wraps(decorate)
    def decorated(*names: Any, **options: Any) -> Callable:
        outer = decorate(*names, **options)
        return lambda own: replacement(outer(own)) if own.__name__ in REPLACEMENTS else outer(own)

    decorated.original = decorate  # type: ignore[attr-defined]
    hub_kernels.use_kernel_func_from_hub_with_fallback = decorated
    integrations.use_kernel_func_from_hub_with_fallback = decorated
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers.models.") and ".modeling_" in name:
            for own in REPLACEMENTS:
                if own in vars(module):
                    setattr(module, own, replacement(getattr(module, own)))
