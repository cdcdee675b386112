#!/usr/bin/env python3
"""Compares every text model of transformers with attn_implementation="attend" and with "eager".

Run it with the Python of an environment that has the wheel and transformers (./dev wheel makes
build/wheel/torch-2.15.0). Each type becomes a small model with random weights. Types that cannot be made small, or that
need other inputs than tokens, are counted and left out. Compares outputs in float32 without padding and with padding on
both sides, and greedy answers of models that generate. A difference is relative to the largest output. Prints a line per
difference; exits with 1 if there is one. Arguments: types, such as bloom (default: all).
"""

import copy
import sys

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import attend

BAR = 2e-5
MAX_PARAMETERS = 3e7
WIDTHS = dict.fromkeys(("hidden_size", "n_embd", "d_model"), 64)
INNER = dict.fromkeys(("intermediate_size", "ffn_dim", "decoder_ffn_dim", "encoder_ffn_dim", "d_ff"), 96)
LAYERS = dict.fromkeys(("num_hidden_layers", "n_layer", "decoder_layers", "encoder_layers", "num_layers",
                        "num_decoder_layers", "num_key_value_heads", "num_experts_per_tok", "type_vocab_size"), 2)
HEADS = dict.fromkeys(("num_attention_heads", "n_head", "decoder_attention_heads", "encoder_attention_heads",
                       "num_heads", "num_experts", "num_local_experts", "n_routed_experts"), 4)
DEPTHS = dict.fromkeys(("head_dim", "d_kv", "kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim",
                        "v_head_dim"), 16)
ONES = dict.fromkeys(("n_group", "topk_group", "first_k_dense_replace", "bos_token_id"), 1)
DROPOUT = dict.fromkeys(("attention_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "dropout",
                         "attn_pdrop", "resid_pdrop", "embd_pdrop"), 0.0)
SMALL = {**WIDTHS, **INNER, **LAYERS, **HEADS, **DEPTHS, **ONES, **DROPOUT, "vocab_size": 100,
         "max_position_embeddings": 64, "n_positions": 64, "sliding_window": 8, "moe_intermediate_size": 32,
         "rotary_dim": 8, "pad_token_id": 0, "eos_token_id": 2}
MAKERS = (transformers.AutoModelForSeq2SeqLM, transformers.AutoModelForCausalLM, transformers.AutoModelForMaskedLM)


def small_config(kind):
    usual = kind()
    return kind(**{name: value for name, value in SMALL.items()
                   if hasattr(usual, name) and not isinstance(getattr(usual, name), (list, dict))})


def made_pair(config):
    """The same random model twice, eager and ours. ValueError if it is large or reads other inputs."""
    maker = next((each for each in MAKERS if type(config) in each._model_mapping.keys()), transformers.AutoModel)
    with torch.device("meta"):
        shapes = maker.from_config(copy.deepcopy(config))
    if sum(each.numel() for each in shapes.parameters()) > MAX_PARAMETERS or shapes.main_input_name != "input_ids":
        raise ValueError("large, or without tokens")
    torch.manual_seed(1)
    eager, ours = (maker.from_config(copy.deepcopy(config), attn_implementation=name).float().eval()
                   for name in ("eager", "attend"))
    ours.load_state_dict(eager.state_dict())
    return eager, ours


def output(model, ids, mask):
    more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    torch.manual_seed(3)  # some models draw numbers
    with torch.no_grad():
        found = model(input_ids=ids, attention_mask=mask, **more)
    return found.logits if hasattr(found, "logits") else found[0]


def answer(model, ids, mask):
    with torch.no_grad():
        return model.generate(input_ids=ids[:, :9], attention_mask=mask[:, :9], max_new_tokens=14, min_new_tokens=14,
                              do_sample=False)


def difference(eager, ours, call, ids, mask):
    """The largest difference of the tokens that are not padding; None if eager cannot compute the call."""
    try:
        wanted = call(eager, ids, mask)
    except Exception:
        return None
    found = call(ours, ids, mask)
    if call is answer:
        return 0.0 if torch.equal(wanted, found) else float("inf")
    kept = mask.bool() if mask is not None and wanted.shape[:2] == mask.shape else slice(None)
    return ((found - wanted)[kept].abs().max() / wanted[kept].abs().max().clamp_min(1)).item()


def compare(name, eager, ours):
    """Number of calls that were compared and that differ."""
    ids = torch.randint(3, 100, (2, 24), generator=torch.Generator().manual_seed(2))
    right, left = torch.ones_like(ids), torch.ones_like(ids)
    right[1, -7:], left[1, :4] = 0, 0
    cases = [("without padding", output, None), ("padding on the right", output, right),
             ("padding on the left", output, left)]
    if eager.can_generate():
        cases.append(("answer", answer, left))
    compared = differ = 0
    for what, call, mask in cases:
        try:
            found = difference(eager, ours, call, ids, mask)
            text = f"{found:.1e}" if found is not None and found > BAR else ""
        except Exception as error:
            found, text = 0.0, f"{type(error).__name__}: {error}"
        compared += found is not None
        differ += text != ""
        if text:
            print(f"{name}, {what}: {text}", flush=True)
    return compared, differ


def main():
    transformers.logging.set_verbosity(60)
    attend.register_with_transformers()
    compared = differ = left_out = 0
    for name in sys.argv[1:] or sorted(CONFIG_MAPPING.keys()):
        try:
            eager, ours = made_pair(small_config(CONFIG_MAPPING[name]))
        except Exception:
            left_out += 1
            continue
        calls, bad = compare(name, eager, ours)
        compared += calls > 0
        differ += bad > 0
    print(f"torch {torch.__version__}, transformers {transformers.__version__}: {compared} types compared, {differ} with"
          f" differences or errors, {left_out} cannot be made small")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
