"""Models of transformers with attn_implementation="attend" against "eager": outputs, gradients, weights, decoding."""

import copy
import subprocess
import sys

import pytest
import torch

import attend

transformers = pytest.importorskip("transformers", reason="SKIPPED: transformers is not installed")
attend.register_with_transformers()

from attend.transformers import NAME, PatternMask, attention_forward, attention_mask_of  # noqa: E402
from transformers import masking_utils  # noqa: E402

SMALL = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = SMALL | {"num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
GPT2 = {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
T5 = {"vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0,
      "decoder_start_token_id": 0}
WHISPER = {
    "vocab_size": 61, "num_mel_bins": 8, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "max_source_positions": 20, "max_target_positions": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1}
# Each query selects four keys. With many heads none of them ties: its choice would depend on rounding.
SELECTING = SMALL | {
    "num_key_value_heads": 4, "pad_token_id": 0, "moe_intermediate_size": 16, "n_routed_experts": 4,
    "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "kv_lora_rank": 16,
    "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 12, "index_n_heads": 16,
    "index_head_dim": 16, "index_topk": 4}
UNDROPPED = SMALL | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
# Modules of Splinter do not say whether they are causal.
ENCODERS = {"bert": ("BertModel", "BertConfig", UNDROPPED),
            "splinter": ("SplinterModel", "SplinterConfig", UNDROPPED | {"question_token_id": 60})}
DECODERS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", GROUPED | {
        "sliding_window": 5, "attn_logit_softcapping": 0.7, "query_pre_attn_scalar": 8}),
    "mistral": ("MistralForCausalLM", "MistralConfig", GROUPED | {"sliding_window": 4}),
    "gpt_oss": ("GptOssForCausalLM", "GptOssConfig", GROUPED | {
        "sliding_window": 4, "num_local_experts": 2, "num_experts_per_tok": 1}),
    "deepseek_v32": ("DeepseekV32ForCausalLM", "DeepseekV32Config", SELECTING),
}
TOKENS = 11


def pair(model, config, options):
    """The same random model twice: eager, and ours."""
    torch.manual_seed(5)
    made = getattr(transformers, config)(**copy.deepcopy(options))
    eager = getattr(transformers, model)._from_config(made, attn_implementation="eager")
    for parameter in eager.parameters():  # sinks and tables of biases begin at 0
        torch.nn.init.normal_(parameter, std=0.3 if parameter.dim() < 2 else 0.15)
    ours = getattr(transformers, model)._from_config(copy.deepcopy(made), attn_implementation=NAME)
    ours.load_state_dict(eager.state_dict())
    return eager.eval(), ours.eval()


def padding(side):
    mask = torch.ones(2, TOKENS, dtype=torch.int64)
    if side == "right":
        mask[1, 7:] = 0
    if side == "left":
        mask[1, :4] = 0
    return mask


def result(model, **inputs):
    outputs = model(**inputs)
    return outputs.logits if "logits" in outputs else outputs.last_hidden_state


def assert_same(eager, ours, kept, **inputs):
    """Outputs of the tokens that are kept, and gradients of all parameters."""
    theirs, mine = result(eager, **inputs), result(ours, **inputs)
    assert (theirs - mine)[kept].abs().max() <= 1e-5
    up = torch.randn_like(theirs)
    up[~kept] = 0
    up /= up.norm()
    for model, found in ((eager, theirs), (ours, mine)):
        model.zero_grad()
        (found * up).sum().backward()
    for (name, a), b in zip(eager.named_parameters(), ours.parameters()):
        assert (a.grad is None) == (b.grad is None), name
        if a.grad is not None:
            assert (a.grad - b.grad).abs().max() <= 1e-5 * max(1.0, a.grad.abs().max()), name


@pytest.mark.parametrize("side", ["none", "right", "left"])
@pytest.mark.parametrize("name", [*ENCODERS, *DECODERS])
def test_text_models(name, side):
    eager, ours = pair(*(ENCODERS | DECODERS)[name])
    mask = padding(side)
    ids = torch.randint(1, 61, (2, TOKENS))
    assert_same(eager, ours, mask.bool(), input_ids=ids, attention_mask=None if side == "none" else mask)


@pytest.mark.parametrize("side", ["right", "left"])
def test_encoder_and_decoder_with_bias(side):
    eager, ours = pair("T5ForConditionalGeneration", "T5Config", T5)
    mask = padding(side)
    assert_same(eager, ours, torch.ones(2, 7) > 0, input_ids=torch.randint(1, 61, (2, TOKENS)), attention_mask=mask,
                decoder_input_ids=torch.randint(1, 61, (2, 7)))
    tables = [p.grad for n, p in ours.named_parameters() if "relative_attention_bias" in n]
    assert len(tables) == 2 and all(g.abs().max() > 0 for g in tables)


@pytest.mark.parametrize("side", ["none", "right", "left"])
def test_models_without_attention_functions(side):
    """transformers takes any registered name for them; they add their mask to their scores."""
    eager, ours = pair("BloomForCausalLM", "BloomConfig", {
        "vocab_size": 61, "hidden_size": 32, "n_layer": 2, "n_head": 4, "hidden_dropout": 0.0, "attention_dropout": 0.0})
    mask = padding(side)
    ids = torch.randint(1, 61, (2, TOKENS))
    assert_same(eager, ours, mask.bool(), input_ids=ids, attention_mask=None if side == "none" else mask)


def test_images():
    eager, ours = pair("ViTModel", "ViTConfig", {
        "image_size": 12, "patch_size": 4, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
    assert_same(eager, ours, torch.ones(2, 10) > 0, pixel_values=torch.randn(2, 3, 12, 12))


def test_speech():
    eager, ours = pair("WhisperForConditionalGeneration", "WhisperConfig", WHISPER)
    assert_same(eager, ours, torch.ones(2, 6) > 0, input_features=torch.randn(2, 8, 40),
                decoder_input_ids=torch.randint(1, 61, (2, 6)))


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("side", ["none", "left"])
@pytest.mark.parametrize("name", DECODERS)
def test_decoding(name, side, cache):
    """Tokens, and the scores of each step."""
    found = []
    for model in pair(*DECODERS[name]):
        torch.manual_seed(9)
        ids = torch.randint(1, 61, (2, TOKENS))
        given = {} if cache == "dynamic" else {"cache_implementation": "static", "disable_compile": True}
        with torch.no_grad():
            found.append(model.generate(ids, attention_mask=padding(side), max_new_tokens=6, min_new_tokens=6,
                                        do_sample=False, output_scores=True, return_dict_in_generate=True,
                                        pad_token_id=0, **given))
    theirs, mine = found
    assert torch.equal(theirs.sequences, mine.sequences)
    for a, b in zip(theirs.scores, mine.scores):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["t5", "whisper"])
def test_decoding_after_an_encoder(name, cache):
    described, inputs = {
        "t5": (("T5ForConditionalGeneration", "T5Config", T5), {
            "input_ids": torch.randint(1, 61, (2, TOKENS)), "attention_mask": padding("right")}),
        "whisper": (("WhisperForConditionalGeneration", "WhisperConfig", WHISPER), {
            "input_features": torch.randn(2, 8, 40)})}[name]
    given = {} if cache == "dynamic" else {"cache_implementation": "static", "disable_compile": True}
    found = []
    for model in pair(*described):
        generate = super(type(model), model).generate if name == "whisper" else model.generate
        with torch.no_grad():
            found.append(generate(**inputs, max_new_tokens=6, min_new_tokens=6, do_sample=False, output_scores=True,
                                  return_dict_in_generate=True, **given))
    assert torch.equal(found[0].sequences, found[1].sequences)
    for a, b in zip(found[0].scores, found[1].scores):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [*ENCODERS, *DECODERS])
def test_weights(name):
    eager, ours = pair(*(ENCODERS | DECODERS)[name])
    ids = torch.randint(1, 61, (2, TOKENS))
    theirs, mine = (model(ids, output_attentions=True).attentions for model in (eager, ours))
    assert len(theirs) == len(mine) == 2
    for a, b in zip(theirs, mine):
        assert a.shape == b.shape and b.untyped_storage().nbytes() > 0
        torch.testing.assert_close(a, b[:] + 0, rtol=0, atol=1e-5)
        assert b.detach().numpy().shape == tuple(a.shape)


def test_a_part_of_the_weights_is_computed():
    q, k = torch.randn(3, 4, 6, 8), torch.randn(3, 2, 9, 8)
    weights = attention_forward(torch.nn.Module(), q, k, k, None, is_causal=False)[1]
    whole = (q @ k.repeat_interleave(2, 1).mT / 8**0.5).softmax(-1)
    for part in ((1,), (1, 2), (-1, -1, -1, -1), (slice(1, 3), slice(2), 3), (slice(None), slice(None, None, 2)),
                 (0, slice(1, 1)), (..., slice(2, 5)), (slice(None), 1, None, slice(2, 4))):
        found = weights[part]
        assert found.shape == whole[part].shape
        torch.testing.assert_close(found + 0, whole[part], rtol=0, atol=1e-6)
    counted = []
    computed = weights.part
    weights.part = lambda heads, rows: counted.append((heads, rows)) or computed(heads, rows)
    assert len(weights[1, 2, 3:5].tolist()) == 2 and counted == [(range(2, 3), range(3, 5))]


def test_packed_sequences_have_the_dense_form():
    eager, ours = pair(*DECODERS["llama"])
    packed = {"input_ids": torch.randint(1, 61, (1, TOKENS)), "use_cache": False,
              "position_ids": torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6]])}
    assert_same(eager, ours, torch.ones(1, TOKENS) > 0, **packed)
    starts = torch.tensor([0, 4, 11], dtype=torch.int32)
    whole = ours(**packed, cu_seq_lens_q=starts, cu_seq_lens_k=starts, max_length_q=7, max_length_k=7)
    torch.testing.assert_close(whole.logits, eager(**packed).logits, rtol=0, atol=1e-5)


def test_training_with_dropout():
    """The same seed, the same result; the mean over seeds is near the result without dropout."""
    _, ours = pair("BertModel", "BertConfig", SMALL | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.5})
    ids = torch.randint(1, 61, (2, TOKENS))
    ours.train()
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(result(ours, input_ids=ids))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])
    found[0].sum().backward()
    assert torch.equal(result(ours.eval(), input_ids=ids), result(ours, input_ids=ids))


CAUSAL, WINDOW = masking_utils.causal_mask_function, masking_utils.sliding_window_causal_mask_function(3)
AROUND = masking_utils.sliding_window_bidirectional_mask_function(2)
EVERY = masking_utils.bidirectional_mask_function


@pytest.mark.parametrize("function", [CAUSAL, WINDOW, AROUND, EVERY])
@pytest.mark.parametrize("side", ["none", "right", "left", "both", "holes", "empty"])
@pytest.mark.parametrize("sizes", [(6, 6, 0, 0), (1, 9, 8, 0), (3, 9, 6, 0), (4, 7, 8, 5), (5, 12, 0, 0)])
def test_patterns_are_the_dense_masks(function, side, sizes):
    queries, keys, q_offset, kv_offset = sizes
    mask = None
    if side != "none":
        mask = torch.ones(2, min(q_offset + queries, kv_offset + keys), dtype=torch.bool)
        places = {"right": slice(-2, None), "left": slice(0, 2), "both": slice(0, 0), "holes": slice(1, None, 2),
                  "empty": slice(None)}
        mask[1, places[side]] = False
        if side == "both":
            mask[1, :1], mask[1, -1:] = False, False
    given = {"batch_size": 2, "q_length": queries, "kv_length": keys, "q_offset": q_offset, "kv_offset": kv_offset,
             "mask_function": function, "attention_mask": mask}
    found = attention_mask_of(**given)
    assert isinstance(found, PatternMask) and found.dtype == torch.float32
    numbers = masking_utils.eager_mask(**given)
    assert found.shape == numbers.shape and torch.equal(found + 0, numbers)
    assert torch.equal(found[:, :, -1], numbers[:, :, -1])
    dense = masking_utils.sdpa_mask(**given, allow_is_causal_skip=False)
    q, k = torch.randn(2, 2, queries, 8), torch.randn(2, 2, keys, 8)
    module = torch.nn.Module()
    ours = attention_forward(module, q, k, k, found)[0]
    for mask in (dense, numbers, numbers.masked_fill(~dense, -torch.inf)):
        torch.testing.assert_close(ours, attention_forward(module, q, k, k, mask)[0], rtol=0, atol=1e-6)


def test_other_patterns_have_the_dense_form():
    chunks = masking_utils.chunked_causal_mask_function(3, torch.zeros(2, dtype=torch.int64))
    images = masking_utils.or_masks(CAUSAL, masking_utils.blockwise_overlay(torch.tensor([[0, 0, 0, -1, -1, -1]] * 2)))
    for function in (chunks, images):
        given = {"batch_size": 2, "q_length": 6, "kv_length": 6, "mask_function": function}
        found = attention_mask_of(**given, dtype=torch.float64, allow_is_causal_skip=True)
        assert torch.equal(found + 0, masking_utils.eager_mask(**given, dtype=torch.float64))
        q = torch.randn(2, 2, 6, 8)
        dense = masking_utils.sdpa_mask(**given, allow_is_causal_skip=False)
        theirs = attention_forward(torch.nn.Module(), q, q, q, dense)[0]
        assert torch.equal(attention_forward(torch.nn.Module(), q, q, q, found)[0], theirs)
    whole = attention_mask_of(batch_size=2, q_length=6, kv_length=6, mask_function=EVERY,
                              allow_is_bidirectional_skip=True)
    assert not whole.scope.clauses


def test_one_mask_for_several_entries():
    q = torch.randn(3, 2, 6, 8)
    padded = torch.tensor([[False, True, True, True, True, False]])
    mask = attention_mask_of(batch_size=1, q_length=6, kv_length=6, attention_mask=padded)
    found = attention_forward(torch.nn.Module(), q, q, q, mask)[0]
    exact = attention_forward(torch.nn.Module(), q, q, q, mask.expand(3, 1, 6, 6) == 0)[0]
    torch.testing.assert_close(found, exact, rtol=0, atol=1e-6)


def test_an_offset_that_changes_in_place():
    """Static caches count their tokens in a tensor."""
    offset = torch.tensor(2)
    mask = attention_mask_of(batch_size=1, q_length=1, kv_length=6, q_offset=offset)
    offset += 1
    assert (mask == 0).tolist() == [[[[True, True, True, False, False, False]]]]


def test_windows_without_a_mask():
    q, k = torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8)
    mask = masking_utils.sdpa_mask(1, 6, 6, mask_function=WINDOW, local_size=3)
    module = torch.nn.Module()
    theirs = attention_forward(module, q, k, k, mask)[0]
    torch.testing.assert_close(attention_forward(module, q, k, k, None, sliding_window=3)[0], theirs, rtol=0, atol=1e-6)
    one = attention_forward(module, q[:, :, 5:], k, k, None, sliding_window=3)[0]
    torch.testing.assert_close(one, theirs[:, 5:], rtol=0, atol=1e-6)


def test_numbers_as_a_mask_have_a_gradient():
    q = torch.randn(1, 2, 5, 8)
    bias, mask = (torch.randn(1, 2, 5, 5, requires_grad=True) for _ in range(2))
    found = attention_forward(torch.nn.Module(), q, q, q, mask, position_bias=bias)[0]
    exact = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask + bias).transpose(1, 2)
    up = torch.randn_like(found)
    mine, theirs = (torch.autograd.grad(y, [mask, bias], up) for y in (found, exact))
    for a, b in zip([found, *mine], [exact, *theirs]):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_compiled():
    eager, ours = pair(*ENCODERS["bert"])
    ids = torch.randint(1, 61, (2, TOKENS))
    compiled = torch.compile(ours, backend="aot_eager")
    torch.testing.assert_close(result(compiled, input_ids=ids, attention_mask=padding("right"))[0],
                               result(eager, input_ids=ids, attention_mask=padding("right"))[0], rtol=0, atol=1e-5)


class Elsewhere(torch.Tensor):
    device = torch.device("cuda")


Q = torch.randn(2, 2, 5, 8)
BAD = [
    ("argument head_mask", lambda: call(head_mask=torch.ones(2))),
    ("attention_mask has shape", lambda: call(mask=torch.ones(2, 5) > 0)),
    ("attention_mask has shape", lambda: call(mask=torch.ones(2, 1, 5, 6) > 0)),
    ("attention_mask has shape", lambda: call(mask=attention_mask_of(batch_size=2, q_length=4, kv_length=4))),
    ("attention_mask has dtype", lambda: call(mask=torch.ones(2, 1, 5, 5, dtype=torch.int64))),
    ("attention_mask has NaN", lambda: call(mask=torch.full((2, 1, 5, 5), float("nan")))),
    ("attention_mask is list", lambda: call(mask=[1])),
    ("indices has shape", lambda: call(indices=torch.zeros(2, 4, 3, dtype=torch.int64))),
    ("sinks has shape", lambda: call(sinks=torch.ones(2, 2, 5, 1))),
    ("dense bias has shape", lambda: call(position_bias=torch.ones(2, 3, 5, 5))),
    ("cu_seq_lens_q is given with 2 batch", lambda: call(cu_seq_lens_q=torch.tensor([0, 5]))),
    ("cu_seq_lens_q is given with 1 queries", lambda: attention_forward(
        torch.nn.Module(), Q[:1, :, :1], Q[:1], Q[:1], None, cu_seq_lens_q=torch.tensor([0, 1]))),
    ("soft_cap is -1", lambda: call(softcap=-1.0)),
    ("query [2, 5, 8]; all must", lambda: attention_forward(torch.nn.Module(), Q[0], Q, Q, None)),
    ("sdpa, which would take its place, has no softcap", lambda: call(query=Q.as_subclass(Elsewhere), softcap=1.0)),
]


def call(query=Q, mask=None, **options):
    return attention_forward(torch.nn.Module(), query, Q, Q, mask, **options)


@pytest.mark.parametrize("number", range(len(BAD)))
def test_the_error_names_the_argument(number):
    text, bad = BAD[number]
    with pytest.raises(ValueError) as caught:
        bad()
    assert text in str(caught.value)


def test_the_fallback_warns_once(recwarn):
    mask = attention_mask_of(batch_size=2, q_length=5, kv_length=5)
    found = [call(query=Q.as_subclass(Elsewhere), mask=mask)[0] for _ in range(2)]
    texts = [str(w.message) for w in recwarn if "attend" in str(w.message)]
    assert texts == ["attend: query is on cuda, and attend computes on the CPU only; sdpa takes its place"]
    torch.testing.assert_close(found[0].as_subclass(torch.Tensor), call(mask=mask)[0], rtol=0, atol=1e-6)


def test_inputs_of_any_strides():
    q = torch.randn(1, 1, 5, 8).expand(2, 3, 5, 8)
    k = torch.randn(2, 5, 3, 8).transpose(1, 2)
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, k).transpose(1, 2)
    found = attention_forward(torch.nn.Module(), q, k, k, None, is_causal=False)[0]
    torch.testing.assert_close(found, exact, rtol=0, atol=1e-6)
    empty = attention_forward(torch.nn.Module(), q[:0], k[:0], k[:0], None)[0]
    assert empty.shape == (0, 5, 3, 8)


def test_a_change_between_forward_and_backward():
    q = torch.randn(1, 1, 5, 8, requires_grad=True)
    own = q * 1
    found = attention_forward(torch.nn.Module(), own, own, own, None)[0]
    own.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.sum().backward()


def test_importing_attend_does_not_import_transformers():
    code = "import sys, attend, attend.transformers; print('transformers' in sys.modules, end='')"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"False"
