"""Attention and recurrences of this package under the library transformers, as `attn_implementation="attend"`.

Importing this module does not import transformers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from . import biases, scopes, scores
from ._checks import STORED, arithmetic, shape
from ._deferred import Deferred
from .functional import attention, attention_weights
from .scopes import UNBOUNDED, Scope

NAME = "attend"

# Arguments that models pass to every attention function, although no result of attention depends on them.
WITHOUT_EFFECT = frozenset({
    "cache", "cache_position", "cu_seqlens", "deterministic", "encoder_attention_mask", "encoder_hidden_states",
    "input_ids", "labels", "layer_idx", "logits_to_keep", "max_length_k", "max_length_q", "num_items_in_batch",
    "output_hidden_states", "output_router_logits", "past_key_values", "position_embeddings", "position_ids",
    "return_dict", "seq_idx", "token_type_ids", "use_cache"})

_warned: set[str] = set()


class PatternMask(Deferred):
    """A mask [batch, 1, queries, keys] for `attention_forward`, which reads its scope.

    Any other operation on it computes the numbers of transformers' eager mask, 0 or the least number of the dtype:
    models without attention functions add their mask to their scores.
    """

    def __init__(self, sizes: tuple[int, ...], dtype: torch.dtype, compute: Callable[[], Tensor], *,
                 scope: Scope) -> None:
        super().__init__(sizes, dtype, compute)
        self.scope = scope


Part = Callable[[range, range], Tensor]
Chosen = tuple["range | int", ...]


class Weights(Deferred):
    """Weights [batch, heads, queries, keys]. If heads and queries are chosen by numbers or slices, only these are
    computed. `part` computes ranges of heads and queries, for all batch entries and keys."""

    def __init__(self, sizes: Sequence[int], dtype: torch.dtype, compute: Callable[[], Tensor], *, part: Part,
                 chosen: Chosen) -> None:
        super().__init__(sizes, dtype, compute)
        self.part, self.chosen = part, chosen

    @classmethod
    def of(cls, part: Part, chosen: Chosen, dtype: torch.dtype) -> Weights:
        ranges = [x if isinstance(x, range) else range(x, x + 1) for x in chosen]

        def compute() -> Tensor:
            batch, heads, rows, keys = ranges
            found = part(heads, rows)[batch.start:batch.stop, :, :, keys.start:keys.stop]
            return found.reshape([len(x) for x in chosen if isinstance(x, range)])

        return cls([len(x) for x in chosen if isinstance(x, range)], dtype, compute, part=part, chosen=chosen)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        aten = torch.ops.aten
        if func in (aten.select.int, aten.slice.Tensor):
            x, axis, *bounds = args
            axes = [n for n, own in enumerate(x.chosen) if isinstance(own, range)]
            axis = axes[axis]
            own = x.chosen[axis]
            found = own[bounds[0]] if func is aten.select.int else own[slice(*bounds)]
            # A step would leave out rows of a range.
            if isinstance(found, int) or found.step == 1:
                return cls.of(x.part, (*x.chosen[:axis], found, *x.chosen[axis + 1:]), x.dtype)
        return super().__torch_dispatch__(func, types, args, kwargs)


def _reach(mask_function: Callable) -> tuple[int, int] | None:
    """How far a query at position p sees keys before and after p; None: the function is another pattern."""
    from transformers import masking_utils as theirs

    if mask_function is theirs.causal_mask_function:
        return UNBOUNDED, 0
    if mask_function is theirs.bidirectional_mask_function:
        return UNBOUNDED, UNBOUNDED
    code, cells = getattr(mask_function, "__code__", None), getattr(mask_function, "__closure__", None)
    if code is None or cells is None:
        return None
    kept = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells)}
    if code is theirs.and_masks(theirs.causal_mask_function).__code__:
        reaches = [_reach(one) for one in kept["mask_functions"]]
        known = [one for one in reaches if one is not None]
        if len(known) < len(reaches):
            return None
        return min(left for left, _ in known), min(right for _, right in known)
    window = kept.get("sliding_window")
    if isinstance(window, int) and window > 0:
        if code is theirs.sliding_window_overlay(1).__code__:
            return window - 1, UNBOUNDED
        if code is theirs.sliding_window_bidirectional_overlay(1).__code__:
            return window, window
    return None


def _window(left: int, right: int, offset: int, queries: int, keys: int) -> Scope:
    """The window, or every key if no pair is outside of it."""
    left = UNBOUNDED if left >= queries - 1 + offset else left
    right = UNBOUNDED if right + offset >= keys - 1 else right
    return Scope() if left == right == UNBOUNDED else scopes.window(left, right, offset=offset)


def _padding(allowed: Tensor | None, batch: int, kv_offset: int, keys: int) -> Scope:
    """The scope of a mask [batch, positions]; True: not padding. Positions after its end are padding."""
    if allowed is None:
        return Scope()
    own = allowed[:, kv_offset:kv_offset + keys].to(torch.bool)
    own = torch.nn.functional.pad(own, (0, keys - own.shape[1])).expand(batch, keys)
    counts = own.sum(1)
    if bool((counts == keys).all()):
        return Scope()
    starts = own.to(torch.uint8).argmax(1)
    ends = torch.where(counts > 0, keys - own.flip(1).to(torch.uint8).argmax(1), 0)
    if not bool((ends - starts == counts).all()):
        return scopes.mask(own[:, None, None])
    found = scopes.key_lengths(ends) if bool((ends < keys).any()) else Scope()
    return found & scopes.key_starts(starts) if bool((starts > 0).any()) else found


def _is_traced() -> bool:
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def attention_mask_of(batch_size: int, q_length: int, kv_length: int, q_offset: Any = 0, kv_offset: Any = 0,
                      mask_function: Callable | None = None, attention_mask: Tensor | None = None,
                      dtype: torch.dtype = torch.float32, use_vmap: bool = False, device: torch.device | str = "cpu",
                      **others: Any) -> Tensor:
    """The mask of a model for `attention_forward`, with the arguments of transformers' mask functions.

    Padding, causal masks and sliding windows become a PatternMask without memory, packed sequences, chunks and image
    blocks a PatternMask with a bool tensor. Traced models and other devices get the mask of `eager`. It is never None: a
    call without a mask may be causal, and some encoders do not say that they are not.
    """
    from transformers import masking_utils as theirs

    mask_function = theirs.causal_mask_function if mask_function is None else mask_function
    arguments = {"batch_size": batch_size, "q_length": q_length, "kv_length": kv_length, "q_offset": q_offset,
                 "kv_offset": kv_offset, "mask_function": mask_function, "attention_mask": attention_mask,
                 "use_vmap": use_vmap, "device": device,
                 **others, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    if _is_traced() or torch.device(device).type != "cpu":
        return theirs.eager_mask(**arguments, dtype=dtype)
    # A static cache adds to its offset in place before the mask is read.
    arguments |= {"q_offset": int(q_offset), "kv_offset": int(kv_offset)}
    reach = None if use_vmap else _reach(mask_function)
    if reach is None:
        scope = scopes.mask(theirs.sdpa_mask(**arguments))
    else:
        scope = _window(*reach, arguments["q_offset"] - arguments["kv_offset"], q_length, kv_length)
        scope = scope & _padding(attention_mask, batch_size, arguments["kv_offset"], kv_length)

    def numbers() -> Tensor:
        return theirs.eager_mask(**arguments, dtype=dtype)

    return PatternMask((batch_size, 1, q_length, kv_length), dtype, numbers, scope=scope)


def _check_names(others: dict[str, Any]) -> None:
    for name, value in others.items():
        if name not in WITHOUT_EFFECT and value is not None:
            raise ValueError(f"attend got the argument {name}, which it does not know and which may change results: use "
                             'attn_implementation="eager"')


def _untaken(query: Tensor, key: Tensor, value: Tensor) -> str | None:
    """Why the kernels cannot take the call, or None."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.device.type != "cpu":
            return f"{name} is on {x.device}, and attend computes on the CPU only"
        if x.dtype not in STORED:
            return f"{name} has dtype {x.dtype}, which attend does not have"
    return "the model is traced by torch.jit" if torch.jit.is_tracing() else None


def _fallback(reason: str, arguments: tuple, options: dict[str, Any]) -> tuple[Tensor, None]:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    for name in ("softcap", "s_aux", "sinks", "indices"):
        if options.get(name) is not None:
            raise ValueError(f'{reason}; sdpa, which would take its place, has no {name}: use '
                             'attn_implementation="eager"')
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"attend: {reason}; sdpa takes its place", stacklevel=3)
    *rows, mask = arguments
    mask = mask.computed() if isinstance(mask, PatternMask) else mask
    return sdpa_attention_forward(*rows, mask, **options)


def _checked_mask(mask: object, batch: int, queries: int, keys: int) -> tuple[Scope, Tensor | None]:
    """A mask as a scope, or as numbers that are added to the scores."""
    if not isinstance(mask, Tensor):
        raise ValueError(f"attention_mask is {type(mask).__name__}; it must be a tensor")
    if mask.dim() != 4 or mask.shape[2] not in (1, queries) or mask.shape[3] not in (1, keys):
        raise ValueError(f"attention_mask has shape {shape(mask)}; it must have shape [batch, heads or 1, {queries}, "
                         f"{keys}]")
    if isinstance(mask, PatternMask):
        # Lengths are per batch entry; one mask may serve several.
        return mask.scope if mask.shape[0] == batch else scopes.mask(mask.computed() == 0), None
    if mask.dtype == torch.bool:
        return scopes.mask(mask), None
    if not mask.dtype.is_floating_point:
        raise ValueError(f"attention_mask has dtype {mask.dtype}; it must be bool, True: attend, or numbers to add")
    if bool(mask.isnan().any()) if not _is_traced() else False:
        raise ValueError("attention_mask has NaN; each entry must be a number")
    if not mask.requires_grad and not _is_traced():
        allowed = mask == 0
        if bool((allowed | (mask <= torch.finfo(mask.dtype).min)).all()):
            return scopes.mask(allowed), None
    return Scope(), mask


def _sink(sinks: Tensor | None, heads: int) -> Tensor | None:
    if sinks is None or tuple(sinks.shape) == (heads,):
        return sinks
    raise ValueError(f"sinks has shape {shape(sinks)}; attend takes one number per head, [{heads}]: use "
                     'attn_implementation="eager"')


def _unmasked(queries: int, keys: int, causal: bool, sliding_window: int | None) -> Scope:
    """The scope of a call without a mask, in which the queries are the last positions of the keys."""
    if not causal:
        return Scope() if sliding_window is None else _window(sliding_window, sliding_window, 0, queries, keys)
    left = UNBOUNDED if sliding_window is None else sliding_window - 1
    return _window(left, 0, keys - queries, queries, keys)


def _selected(indices: Tensor, batch: int, queries: int, keys: int) -> Scope:
    """The keys that each query selected (DeepSeek-V3.2 and models like it), which `eager` has in its mask."""
    if indices.dim() != 3 or tuple(indices.shape[:2]) != (batch, queries):
        raise ValueError(f"indices has shape {shape(indices)}; it must have shape [{batch}, {queries}, keys]")
    allowed = torch.zeros(batch, queries, keys, dtype=torch.bool).scatter(2, indices.long(), True)
    return scopes.mask(allowed[:, None])


def _segments(of_queries: Tensor, of_keys: Tensor | None, query: Tensor, key: Tensor, causal: bool) -> Scope:
    """Packed sequences."""
    if query.shape[0] != 1:
        raise ValueError(f"cu_seq_lens_q is given with {query.shape[0]} batch entries; packed sequences must be in one")
    if causal and query.shape[2] != key.shape[2]:
        raise ValueError(f"cu_seq_lens_q is given with {query.shape[2]} queries and {key.shape[2]} keys; a causal call "
                         "must have equal numbers")
    return scopes.segments(of_queries, of_keys)


def _sum(a: Tensor | None, b: Tensor | None, dtype: torch.dtype) -> biases.Bias | None:
    terms = [x.to(dtype) for x in (a, b) if x is not None]
    return biases.dense(sum(terms[1:], terms[0])) if terms else None


def attention_forward(module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
                      dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None,
                      position_bias: Tensor | None = None, sliding_window: int | None = None,
                      softcap: float | None = None, s_aux: Tensor | None = None, sinks: Tensor | None = None,
                      cu_seq_lens_q: Tensor | None = None, cu_seq_lens_k: Tensor | None = None,
                      indices: Tensor | None = None, output_attentions: bool | None = False,
                      **others: Any) -> tuple[Tensor, Tensor | None]:
    """Attention with the arguments of transformers' attention functions.

    query [batch, heads, queries, depth], key and value [batch, key_heads, keys, depth]. Returns the context [batch,
    queries, heads, value_depth] and the weights [batch, heads, queries, keys], which are before dropout and without a
    gradient, and are computed when they are read. Errors: ValueError with the name of the argument.
    """
    _check_names(others)
    reason = _untaken(query, key, value)
    if reason is not None:
        options = {"dropout": dropout, "scaling": scaling, "is_causal": is_causal, "position_bias": position_bias,
                   "softcap": softcap, "s_aux": s_aux, "sinks": sinks, "indices": indices}
        return _fallback(reason, (module, query, key, value, attention_mask), options)
    queries, heads = query.shape[2], query.shape[1]
    may_be_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is None and may_be_causal and 1 < queries < key.shape[2]:
        # The first call with a static cache: the other keys are not written yet.
        key, value = key[:, :, :queries], value[:, :, :queries]
        position_bias = None if position_bias is None else position_bias[..., :queries]
    keys = key.shape[2]
    if attention_mask is None:
        scope, numbers = _unmasked(queries, keys, may_be_causal, sliding_window), None
    else:
        scope, numbers = _checked_mask(attention_mask, key.shape[0], queries, keys)
    if query.shape[0] == 1 < key.shape[0]:
        query = query.expand(key.shape[0], -1, -1, -1)
    if indices is not None:
        scope = scope & _selected(indices, query.shape[0], queries, keys)
    if cu_seq_lens_q is not None:
        scope = scope & _segments(cu_seq_lens_q, cu_seq_lens_k, query, key, may_be_causal)
    choices = {"score": "scaled_dot" if scaling is None else scores.dot(float(scaling)), "scope": scope,
               "bias": _sum(position_bias, numbers, arithmetic(query.dtype)), "soft_cap": softcap or 0.0,
               "sink": _sink(s_aux if sinks is None else sinks, heads)}
    context, lse = attention(query, key, value, dropout=dropout, return_lse=True, **choices)
    q, k, of_rows = query.detach(), key.detach(), lse.detach()

    def part(of_heads: range, rows: range) -> Tensor:
        if len(of_heads) == 0 or len(rows) == 0:
            return q.new_empty(q.shape[0], len(of_heads), len(rows), keys)
        return attention_weights(q, k, of_rows, heads=list(of_heads), first_row=rows.start, rows=len(rows),
                                 **choices).to(q.dtype)

    weights: Tensor | None = None
    if not _is_traced():
        weights = Weights.of(part, (range(q.shape[0]), range(heads), range(queries), range(keys)), q.dtype)
    elif output_attentions:
        weights = part(range(heads), range(queries))
    return context.transpose(1, 2).contiguous(), weights


def register_with_transformers(*, recurrences: bool = True) -> None:
    """Makes `attn_implementation="attend"` known to transformers (5.24), as an attention and as a mask function.

    recurrences: replaces the functions for the gated delta rule, KDA, Mamba-2 and causal convolutions in the models of
    transformers. A replaced function calls the one of transformers if the kernels cannot take the arguments. A second
    call changes nothing. ImportError without transformers.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, attention_mask_of)
    if recurrences:
        from ._transformers_recurrences import replace_recurrences
        replace_recurrences()
