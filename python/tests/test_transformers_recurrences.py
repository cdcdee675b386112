"""Recurrences of transformers' models by the kernels against transformers' functions."""

import copy
import importlib

import pytest
import torch

import attend

transformers = pytest.importorskip("transformers", reason="SKIPPED: transformers is not installed")
attend.register_with_transformers()

from attend._transformers_recurrences import REPLACEMENTS  # noqa: E402

SMALL = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0, "tie_word_embeddings": False}
DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 6,
         "linear_conv_kernel_dim": 4, "layer_types": ["linear_attention", "full_attention", "linear_attention"]}
EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16,
           "shared_expert_intermediate_size": 16, "decoder_sparse_step": 1}
MAMBA = {"mamba_d_state": 8, "mamba_d_conv": 4, "mamba_n_groups": 2, "mamba_n_heads": 4, "mamba_d_head": 16,
         "mamba_expand": 2, "mamba_chunk_size": 8}
MODELS = {
    "qwen3_next": ("Qwen3NextForCausalLM", "Qwen3NextConfig", SMALL | DELTA | EXPERTS),
    "qwen3_5": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", SMALL | DELTA),
    "olmo_hybrid": ("OlmoHybridForCausalLM", "OlmoHybridConfig", SMALL | DELTA | {"linear_num_key_heads": 4}),
    "kimi_linear": ("KimiLinearForCausalLM", "KimiLinearConfig", SMALL | {
        "linear_num_heads": 4, "linear_head_dim": 8, "linear_conv_kernel_dim": 4, "num_experts_per_tok": 1,
        "num_local_experts": 2, "n_shared_experts": 1, "moe_intermediate_size": 16, "n_group": 1, "topk_group": 1,
        "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "num_key_value_heads": 4,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"]}),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", {
        "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4, "head_dim": 16, "state_size": 8,
        "n_groups": 2, "chunk_size": 8, "expand": 2, "pad_token_id": 0}),
    "bamba": ("BambaForCausalLM", "BambaConfig", SMALL | MAMBA | {"attn_layer_indices": [1]}),
    "falcon_h1": ("FalconH1ForCausalLM", "FalconH1Config", SMALL | MAMBA | {"mamba_d_ssm": 64}),
    "nemotron_h": ("NemotronHForCausalLM", "NemotronHConfig", SMALL | {
        "layers_block_type": ["mamba", "attention", "mamba"], "mamba_num_heads": 4, "mamba_head_dim": 16,
        "ssm_state_size": 8, "n_groups": 2, "conv_kernel": 4, "chunk_size": 8, "expand": 2}),
    "lfm2": ("Lfm2ForCausalLM", "Lfm2Config", SMALL | {
        "layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 8}),
}


def modelling(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


@pytest.fixture
def model_of(monkeypatch):
    """A model, eager or ours. While an eager one runs, its module has the functions of transformers."""

    def made(name):
        module = modelling(name)
        ours = {own: vars(module)[own] for own in REPLACEMENTS if own in vars(module)}
        assert ours and all(hasattr(function, "original") for function in ours.values())
        model, config, options = MODELS[name]
        torch.manual_seed(5)
        own = getattr(transformers, model)._from_config(
            getattr(transformers, config)(**copy.deepcopy(options)), attn_implementation="eager").eval()

        def choose(original):
            for function, replaced in ours.items():
                monkeypatch.setattr(module, function, replaced.original if original else replaced)

        return own, choose

    return made


@pytest.mark.parametrize("side", ["none", "left", "right"])
@pytest.mark.parametrize("name", MODELS)
def test_outputs_and_gradients(model_of, name, side):
    model, choose = model_of(name)
    ids = torch.randint(1, 61, (2, 70))
    mask = torch.ones(2, 70, dtype=torch.int64)
    if side != "none":
        mask[1, slice(0, 9) if side == "left" else slice(60, None)] = 0
    up = None
    found = []
    for original in (True, False):
        choose(original)
        model.zero_grad()
        logits = model(ids, attention_mask=None if side == "none" else mask, use_cache=False).logits
        if up is None:
            up = torch.randn_like(logits) * mask.unsqueeze(-1)
            up /= up.norm()
        (logits * up).sum().backward()
        found.append((logits.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}))
    (theirs, exact), (mine, gradients) = found
    assert (theirs - mine)[mask.bool()].abs().max() <= 1e-5 * max(1.0, theirs.abs().max())
    assert exact.keys() == gradients.keys()
    for n in exact:
        assert (exact[n] - gradients[n]).abs().max() <= 1e-5 * max(1.0, exact[n].abs().max()), n


@pytest.mark.parametrize("name", MODELS)
def test_decoding_step_by_step(model_of, name):
    model, choose = model_of(name)
    ids = torch.randint(1, 61, (2, 12))
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, :3] = 0
    found = []
    for original in (True, False):
        choose(original)
        with torch.no_grad():
            found.append(model.generate(ids, attention_mask=mask, max_new_tokens=5, min_new_tokens=5, do_sample=False,
                                        output_scores=True, return_dict_in_generate=True, pad_token_id=0))
    theirs, mine = found
    assert torch.equal(theirs.sequences, mine.sequences)
    for a, b in zip(theirs.scores, mine.scores):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_second_call_goes_on_from_the_cache(model_of, name):
    model, choose = model_of(name)
    ids = torch.randint(1, 61, (1, 12))
    found = []
    for original in (True, False):
        choose(original)
        with torch.no_grad():
            first = model(ids[:, :7], use_cache=True)
            cache = next(first[key] for key in ("cache", "past_key_values") if key in first)
            found.append(model(ids[:, 7:], cache=cache).logits)
    torch.testing.assert_close(*found, rtol=0, atol=1e-5)


def test_packed_sequences():
    """Packed sequences, which transformers' functions refuse, are the sequences one by one."""
    torch.manual_seed(5)
    model = transformers.Qwen3NextForCausalLM._from_config(
        transformers.Qwen3NextConfig(**MODELS["qwen3_next"][2]), attn_implementation="attend").eval()
    ids = torch.randint(1, 61, (1, 12))
    starts = torch.tensor([0, 5, 12], dtype=torch.int32)
    packed = {"position_ids": torch.cat([torch.arange(5), torch.arange(7)])[None], "use_cache": False,
              "cu_seq_lens_q": starts, "cu_seq_lens_k": starts, "max_length_q": 7, "max_length_k": 7,
              "seq_idx": torch.tensor([[0] * 5 + [1] * 7], dtype=torch.int32)}
    with torch.no_grad():
        whole = model(ids, **packed).logits
        parts = torch.cat([model(part).logits for part in ids.split([5, 7], 1)], 1)
    torch.testing.assert_close(whole, parts, rtol=0, atol=1e-5)


def test_other_arguments_go_to_the_function_of_transformers():
    module = modelling("qwen3_next")
    x, w = torch.randn(2, 6, 9), torch.randn(6, 4)
    for activation in ("gelu", "silu", None):
        ours = module.causal_conv1d_fn(x, w, activation=activation)
        theirs = module.causal_conv1d_fn.original(x, w, activation=activation)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
        torch.testing.assert_close(module.causal_conv1d_fn(x, w, None, activation), theirs, rtol=0, atol=1e-5)
    state = torch.randn(2, 6, 4)
    other = state.clone()
    ours = module.causal_conv1d_update(x[..., :1], state, w, None, "silu")
    theirs = module.causal_conv1d_update.original(x[..., :1], other, w, None, "silu")
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    assert torch.equal(state, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_dtypes(dtype):
    module = modelling("qwen3_next")
    q, k = (torch.randn(1, 70, 2, 8).to(dtype) for _ in range(2))
    v, beta = torch.randn(1, 70, 4, 6).to(dtype), torch.rand(1, 70, 4).to(dtype)
    g = -torch.rand(1, 70, 4)
    options = {"g": g, "beta": beta, "output_final_state": True, "use_qk_l2norm_in_kernel": True}
    for own in (module.torch_chunk_gated_delta_rule, module.torch_recurrent_gated_delta_rule):
        ours, theirs = own(q, k, v, **options), own.original(q, k, v, **options)
        assert ours[0].dtype == dtype and ours[0].is_contiguous()
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a.double(), b.double(), rtol=0, atol=1e-2 if dtype == torch.bfloat16 else 1e-5)


def test_registering_twice_changes_nothing():
    before = modelling("mamba2").mamba2_chunk_scan
    attend.register_with_transformers()
    assert modelling("mamba2").mamba2_chunk_scan is before
    assert not hasattr(before.original, "original")
