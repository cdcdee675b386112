"""Compares classifiers of pairs of texts with `transformers` and with CrossEncoder of `sentence-transformers`.

For pretrained_check.py.
"""

import sentence_transformers
import torch
import transformers

from pretrained_heads import module_list
from pretrained_models import FAMILIES, draw_weights, drawn_texts
from pretrained_sentences import PROMPTS
from pretrained_texts import difference

# More tokens than a limit of 16, fewer on one side, and equal numbers.
LONGEST = 16


def limit(tokenizer):
    """Limits pairs to LONGEST tokens, except for tokenizers in Python, which give the odd token to the other text."""
    if tokenizer.is_fast:
        tokenizer.model_max_length = LONGEST


def drawn_pairs():
    return list(zip(drawn_texts(20, 2, 12), drawn_texts(20, 5, 12), strict=True))


def lines_of(pairs):
    return [f"{first}\t{second}" for first, second in pairs]


def with_types(tokenizer):
    """A tokenizer that also gives the types of tokens, as BERT's does."""
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    tokenizer.init_kwargs["model_input_names"] = tokenizer.model_input_names
    return tokenizer


def pair_labels_differ(program, model, tokenizer, pairs):
    """Compares pairs, and single texts, which the same model reads."""
    count = model.config.num_labels
    out = program.imported(model, tokenizer)
    sources = lines_of(pairs[:-2]) + [first for first, _ in pairs[-2:]]
    given = pairs[:-2] + [(first,) for first, _ in pairs[-2:]]
    worst = 0
    lines = program.lines("predict", out, sources, "--beam", str(count), "--nbest", str(count))
    for texts, line in zip(given, lines, strict=True):
        with torch.no_grad():
            theirs = model(**tokenizer(*texts, return_tensors="pt")).logits[0].log_softmax(-1)
        found = {each["target"]: each["log_probability"] for each in line["predictions"]}
        worst = max(worst, difference([found[model.config.id2label[i]] for i in range(count)], theirs))
    return worst


def cross_encoder_differ(activation):
    """Compares the scores of CrossEncoder.predict, of pairs cut at LONGEST tokens."""

    def differ(program, model, tokenizer, pairs):
        limit(tokenizer)
        model.config.sentence_transformers = {"activation_fn": f"torch.nn.modules.{activation}"}
        out = program.imported(model, tokenizer)
        folder = program.folder / f"foreign{program.count}"
        theirs = sentence_transformers.CrossEncoder(str(folder), device="cpu")
        theirs.model.double()
        scores = theirs.predict(pairs, convert_to_tensor=True)
        lines = program.lines("predict", out, lines_of(pairs))
        ours = [line["predictions"][0]["number"] for line in lines]
        return difference(ours, scores) / max(1, scores.abs().max().item())

    return differ


def scores_of(encoder, pairs, **prompt):
    """Scores in float64 by predict, which rank must give, too."""
    scores = encoder.predict(pairs, convert_to_tensor=True, **prompt)
    ranked = encoder.rank(pairs[0][0], [second for _, second in pairs], **prompt)
    again = encoder.predict([(pairs[0][0], second) for _, second in pairs], **prompt)
    assert all(abs(one["score"] - again[one["corpus_id"]]) < 1e-12 for one in ranked)
    return scores


def cross_encoder_prompts_differ(program, model, tokenizer, pairs):
    """Compares scores after the usual prompt, another and none, cut at LONGEST tokens, and the exported folder's."""
    limit(tokenizer)
    files = {"modules.json": module_list([("", "Transformer")]),
             "sentence_bert_config.json": {"transformer_task": "sequence-classification",
                                           "modality_config": {"text": {"method": "forward",
                                                                        "method_output_name": "logits"}},
                                           "module_output_name": "scores"},
             "config_sentence_transformers.json": {
                 "model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity",
                 "prompts": PROMPTS, "default_prompt_name": "query"}}
    out = program.imported(model, tokenizer, files.items())
    theirs = sentence_transformers.CrossEncoder(str(program.folder / f"foreign{program.count}"), device="cpu").double()
    worst, usual = 0, scores_of(theirs, pairs)
    assert difference(usual, scores_of(theirs, pairs, prompt="")) > 1e-4
    for options, prompt in (((), {}), (("--prompt-name", "plain"), {"prompt_name": "plain"}),
                            (("--prompt", "a dog "), {"prompt": "a dog "})):
        scores = scores_of(theirs, pairs, **prompt)
        ours = [line["predictions"][0]["number"] for line in program.lines("predict", out, lines_of(pairs), *options)]
        worst = max(worst, difference(ours, scores) / max(1, scores.abs().max().item()))
    written = program.folder / f"written{program.count}"
    program.run("export", out, "--out", written)
    again = sentence_transformers.CrossEncoder(str(written), device="cpu").double()
    return max(worst, *(difference(scores_of(again, pairs, **prompt), scores_of(theirs, pairs, **prompt))
                        for prompt in ({}, {"prompt_name": "plain"})))


def exported_pairs_differ(program, model, tokenizer, pairs):
    """Compares the exported folder with the first model, both in float64."""
    ours = program.imported(model, tokenizer)
    out = program.folder / f"written{program.count}"
    written = program.run("export", ours, "--out", out).split()[-1]
    again = getattr(transformers, written).from_pretrained(out).eval().double()
    reader = transformers.AutoTokenizer.from_pretrained(out)
    worst = 0
    for pair in pairs:
        with torch.no_grad():
            answers = [one(**splitter(*pair, return_tensors="pt")).logits[0]
                       for one, splitter in ((again, reader), (model, tokenizer))]
        worst = max(worst, difference(*answers))
    return worst


def pair_rows(program):
    rows = []
    pairs = drawn_pairs()
    for index, (name, make_config, values, make_tokenizer) in enumerate(FAMILIES):
        for labels, what, differ in (
                (5, "log probabilities of labels of pairs", pair_labels_differ),
                (1, "scores of pairs, sigmoid, cut at 16", cross_encoder_differ("activation.Sigmoid")),
                (1, "scores of pairs, as logits, of the largest", cross_encoder_differ("linear.Identity")),
                (1, "scores of pairs after prompts, also of the export", cross_encoder_prompts_differ),
                (5, "export of a classifier of pairs", exported_pairs_differ)):
            has_types = index == 0 or name in ("Electra", "Albert")
            tokenizer = with_types(make_tokenizer()) if has_types else make_tokenizer()
            config = make_config(vocab_size=len(tokenizer) + 3, **values, num_labels=labels)
            model = draw_weights(getattr(transformers, name + "ForSequenceClassification")(config), 4)
            rows.append((config.model_type, name + "ForSequenceClassification", what,
                         differ(program, model, tokenizer, pairs)))
    return rows
