#!/usr/bin/env bash
# T5Config has num_layers for the encoder and num_decoder_layers for the decoder. One would guess that generate works
# for any pair of depths, as forward does. If the decoder is deeper than the encoder, it raises IndexError: the cache
# has num_layers layers, since the configuration for it renames decoder_layers, but not num_decoder_layers. Without a
# cache, T5 generates. BART has the key decoder_layers and generates with a cache, too.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python torch==2.15.0 transformers==5.24.0 numpy==2.4.6
python/bin/python - <<'PY'
import torch
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration

source = torch.tensor([[5, 6, 7, 1]])


def t5(encoder, decoder):
    return T5ForConditionalGeneration(T5Config(
        vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_heads=2, num_layers=encoder, num_decoder_layers=decoder,
        decoder_start_token_id=0)).eval()


def bart(encoder, decoder):
    return BartForConditionalGeneration(BartConfig(
        vocab_size=20, d_model=16, encoder_layers=encoder, decoder_layers=decoder, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16)).eval()


def outcome(model, **options):
    model(input_ids=source, decoder_input_ids=torch.tensor([[0, 3]]), **options)
    try:
        return f"{model.generate(source, min_new_tokens=3, max_new_tokens=3, **options).shape[1] - 1} tokens"
    except IndexError as error:
        return f"IndexError: {error}"


found = {}
for make in (t5, bart):
    for depths in ((2, 1), (2, 2), (1, 2)):
        for use_cache in (True, False):
            key = (make.__name__, *depths, use_cache)
            found[key] = outcome(make(*depths), use_cache=use_cache)
            print("{}: encoder {}, decoder {}, use_cache={}: generate gives".format(*key), found[key])
failed = [key for key, result in found.items() if result != "3 tokens"]
assert failed == [("t5", 1, 2, True)] and found[failed[0]].startswith("IndexError")
PY
