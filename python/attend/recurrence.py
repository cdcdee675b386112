"""Linear recurrences and the causal convolution that precedes them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._checks import arithmetic, check_integers, check_parameter, check_stored, shape, without_autocast
from . import _operators


def _check_like(name: str, given: Tensor, sizes: tuple[int, ...], value: Tensor) -> Tensor:
    own = check_parameter(name, given, value)
    if tuple(own.shape) != sizes:
        raise ValueError(f"{name} has shape {shape(own)}; it must have shape {list(sizes)}")
    return own


def _checked_decay(decay: Tensor | None, value: Tensor, depth: int) -> Tensor | None:
    if decay is None:
        return None
    own = check_parameter("decay", decay, value)
    batch, heads, tokens = value.shape[:3]
    if own.dim() == 1 and own.shape[0] == heads:
        return own.view(1, heads, 1, 1).expand(batch, heads, tokens, 1)
    if tuple(own.shape) == (batch, heads, tokens):
        return own.unsqueeze(-1)
    if tuple(own.shape) == (batch, heads, tokens, depth):
        return own
    raise ValueError(f"decay has shape {shape(own)}; it must have shape [{heads}], [{batch}, {heads}, {tokens}] or "
                     f"[{batch}, {heads}, {tokens}, {depth}]")


def _checked_rows(query: Tensor, key: Tensor, value: Tensor) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_stored(name, x)
        if x.dim() != 4:
            raise ValueError(f"{name} has shape {shape(x)}; it must have 4 axes: batch, heads, tokens, depth")
        if x.dtype != value.dtype:
            raise ValueError(f"{name} has dtype {x.dtype}, value {value.dtype}; they must match")
    if query.shape != key.shape:
        raise ValueError(f"query has shape {shape(query)}, key {shape(key)}; they must match")
    if key.shape[0] != value.shape[0] or key.shape[2] != value.shape[2]:
        raise ValueError(f"value has shape {shape(value)}, key {shape(key)}; batch and tokens must match")
    if key.shape[1] == 0 or value.shape[1] % key.shape[1] != 0:
        raise ValueError(f"key has {key.shape[1]} heads, value {value.shape[1]}; the first must divide the second")


def linear_recurrence(query: Tensor, key: Tensor, value: Tensor, *, decay: Tensor | None = None,
                      strength: Tensor | None = None, delta: bool = False, scale: float | None = None,
                      l2_normalise: bool = False, initial: Tensor | None = None,
                      offsets: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Outputs o_t = scale S_t^T q_t of a linear recurrence, and the last state.

    S_t = e^(g_t) S_(t-1) + k_t u_t^T, with u_t = b_t (v_t - (e^(g_t) S_(t-1))^T k_t) by the delta rule, otherwise u_t
    = b_t v_t. Linear attention, retention, Mamba-2, GLA, DeltaNet and the gated delta rule are cases of it.

    Shapes: query and key [batch, key_heads, tokens, depth], value [batch, heads, tokens, value_depth]; heads /
    key_heads adjacent heads share queries and keys. dtypes: float32, float64, bfloat16, float16, on the CPU.

    decay: g, natural logarithms of at most 0: [heads], [batch, heads, tokens] or [batch, heads, tokens, depth].
    strength: b, [batch, heads, tokens]; None: 1. scale: None: 1 / sqrt(depth). l2_normalise: queries and keys become
    x / sqrt(x . x + 1e-6). initial: the state before the first token, [batch, heads, depth, value_depth]; None: 0.
    offsets: int64 [sequences + 1] (cu_seqlens) for packed sequences in one batch entry; states then have an axis of
    sequences instead of batch.

    Returns output [batch, heads, tokens, value_depth] and the state after the last token [batch, heads, depth,
    value_depth], float32 unless inputs are float64. Memory is linear in the tokens, forward and backward.

    Errors: ValueError with the name of the argument; RuntimeError for decays above 0 or NaN and for devices.
    Sources: Katharopoulos et al. 2020, Sun et al. 2023, Dao and Gu 2024, Yang et al. 2024.
    """
    _checked_rows(query, key, value)
    depth = key.shape[3]
    with without_autocast():
        own_decay = _checked_decay(decay, value, depth)
        own_strength = None
        if strength is not None:
            own_strength = _check_like("strength", strength, tuple(value.shape[:3]), value).unsqueeze(-1)
        own_offsets = None if offsets is None else check_integers("offsets", offsets)
        if own_offsets is not None and (own_offsets.dim() != 1 or own_offsets.numel() == 0 or value.shape[0] != 1):
            raise ValueError(f"offsets has shape {shape(own_offsets)} and value {value.shape[0]} batch entries; they must "
                             "be [sequences + 1] and 1")
        sequences = value.shape[0] if own_offsets is None else own_offsets.shape[0] - 1
        own_initial = None
        if initial is not None:
            own_initial = _check_like("initial", initial, (sequences, value.shape[1], depth, value.shape[3]), value)
        own_scale = 1 / math.sqrt(max(depth, 1)) if scale is None else float(scale)
        if not math.isfinite(own_scale):
            raise ValueError(f"scale is {scale}; it must be finite")
        output, state = _operators.recurrence(query, key, value, own_decay, own_strength, own_initial, own_offsets,
                                              delta, l2_normalise, own_scale)
    return output, state


def causal_convolution(input: Tensor, weight: Tensor, bias: Tensor | None = None, state: Tensor | None = None, *,
                       silu: bool = False) -> tuple[Tensor, Tensor]:
    """y_tc = a(bias_c + sum_w weight_cw x_(t - width + 1 + w, c)), with a(z) = z sigmoid(z) if silu, otherwise z.

    Shapes: input [batch, tokens, channels], weight [channels, width], bias [channels], state [batch, width - 1,
    channels]: the inputs before the first token, None: 0. Floating-point dtypes, on the CPU; the arithmetic is
    float32, or float64 for float64.

    Returns y, shaped as the input, and the last width - 1 inputs, the state of a later call.
    Errors: ValueError with the name of the argument. Source: ONNX opset 27, CausalConvWithState.
    """
    check_stored("input", input)
    if input.dim() != 3:
        raise ValueError(f"input has shape {shape(input)}; it must have shape [batch, tokens, channels]")
    kept = arithmetic(input.dtype)
    channels = input.shape[2]
    own_weight = check_parameter("weight", weight, input)
    if own_weight.dim() != 2 or own_weight.shape[0] != channels or own_weight.shape[1] < 1:
        raise ValueError(f"weight has shape {shape(own_weight)}; it must have shape [{channels}, width]")
    own_bias = None if bias is None else _check_like("bias", bias, (channels,), input)
    own_state = None
    if state is not None:
        own_state = _check_like("state", state, (input.shape[0], own_weight.shape[1] - 1, channels), input)
    output, last = _operators.convolution(input.to(kept), own_weight, own_bias, own_state, silu)
    return output.to(input.dtype), last.to(input.dtype)
