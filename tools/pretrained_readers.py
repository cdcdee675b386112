"""Compares models of extractive question answering with `transformers`; for pretrained_check.py.

transformers 5 has no pipeline for this task any more. This file finds the answers by the rules of the pipeline of
transformers 4, without its extension of answers to whole words: probabilities over the passage and the first token,
spans of up to 15 tokens, and windows of a long passage. Some tokenizers count the space before a token as its text;
here answers have no space at their ends, and no token of spaces is one of their ends.
"""

import itertools
import math

import torch
import transformers
from tokenizers import processors

from pretrained_models import FAMILIES, SIZES, draw_weights, drawn_texts, unigram
from pretrained_pairs import lines_of, with_types
from pretrained_texts import difference

LONGEST, OVERLAP, COUNT = 15, 128, 20
READERS = ("Bert", "DistilBert", "Roberta", "XLMRoberta", "ModernBert")
CAMEMBERT = ("Camembert", transformers.CamembertConfig, {**SIZES, "type_vocab_size": 1, "pad_token_id": 1}, unigram)


def with_trimmed_places(tokenizer):
    """A tokenizer of bytes; places of tokens lack the space before them, as in RoBERTa."""
    marks = [(mark, tokenizer.convert_tokens_to_ids(mark)) for mark in ("</s>", "<s>")]
    tokenizer.backend_tokenizer.post_processor = processors.RobertaProcessing(*marks, add_prefix_space=False)
    return tokenizer


def reading_tokenizer(name, make_tokenizer):
    """The tokenizer of a model with this prefix, as released models have it."""
    change = {"Bert": with_types, "Roberta": with_trimmed_places}.get(name)
    return change(make_tokenizer()) if change else make_tokenizer()


def without_spaces(passage, place):
    begin, end = place
    text = passage[begin:end]
    begin += len(text) - len(text.lstrip())
    return begin, max(begin, end - (len(text) - len(text.rstrip())))


def logs_of(model, tokenizer, batch, row):
    """Log probabilities of each token as the first and as the last of an answer, and the texts of the tokens."""
    inputs = {name: torch.tensor([batch[name][row]]) for name in tokenizer.model_input_names if name in batch}
    with torch.no_grad():
        output = model(**inputs)
    sides = batch.sequence_ids(row)
    allowed = torch.tensor([place == 0 or side == 1 for place, side in enumerate(sides)])
    logs = [scores[0].masked_fill(~allowed, -math.inf).log_softmax(-1).tolist()
            for scores in (output.start_logits, output.end_logits)]
    return *logs, sides


def found_spans(model, tokenizer, question, passage, no_answer=False):
    """(score, start, end), the most probable first; start and end in characters of the passage."""
    room = tokenizer.model_max_length - tokenizer.num_special_tokens_to_add(pair=True)
    room -= len(tokenizer(question, add_special_tokens=False)["input_ids"])
    overlap = min(OVERLAP, room // 2)
    batch = tokenizer(question, passage, truncation="only_second", max_length=tokenizer.model_max_length,
                      stride=overlap, return_overflowing_tokens=True, return_offsets_mapping=True)
    spans, none = {}, math.inf
    for row in range(len(batch["input_ids"])):
        firsts, lasts, sides = logs_of(model, tokenizer, batch, row)
        none = min(none, firsts[0] + lasts[0])
        texts = [without_spaces(passage, place) for place in batch["offset_mapping"][row]]
        # The mark of a space before a text has the first character of the text as its place.
        tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][row])
        places = [place for place, side in enumerate(sides)
                  if side == 1 and texts[place][0] < texts[place][1] and tokens[place].strip("\u2581\u0120")]
        for first, last in itertools.product(places, repeat=2):
            if first <= last < first + LONGEST:
                start, end = texts[first], texts[last]
                span = (row * (room - overlap) + first, row * (room - overlap) + last)
                best = max(firsts[first] + lasts[last], spans.get(span, (-math.inf,))[0])
                spans[span] = (best, start[0], end[1])
    ranked = sorted(spans.values(), reverse=True)
    if no_answer:
        ranked = sorted([*ranked, (none, 0, 0)], reverse=True)
    return [(math.exp(log), start, end) for log, start, end in ranked[:COUNT]]


def answers_differ(longest, no_answer):
    def differ(program, model, tokenizer, pairs):
        # The program cuts questions over half of the tokens.
        asked = max(len(tokenizer(question, add_special_tokens=False)["input_ids"]) for question, _ in pairs)
        tokenizer.model_max_length = max(longest, 2 * asked + tokenizer.num_special_tokens_to_add(pair=True))
        out = program.imported(model, tokenizer)
        options = ["--nbest", str(COUNT), *(["--no-answer"] if no_answer else [])]
        worst = 0
        for (question, passage), line in zip(pairs, program.lines("predict", out, lines_of(pairs), *options),
                                             strict=True):
            ours, theirs = line["predictions"], found_spans(model, tokenizer, question, passage, no_answer)
            if len(ours) != len(theirs):
                return math.inf
            worst = max(worst, difference([each["score"] for each in ours],
                                          torch.tensor([score for score, _, _ in theirs])))
            for each, (_, start, end) in zip(ours[:1], theirs):
                if each["target"] != passage[start:end] or (each["start"], each["end"]) != (start, end):
                    return math.inf
        return worst

    return differ


def exported_readers_differ(program, model, tokenizer, pairs):
    """Compares the exported folder with the first model, both in float64."""
    ours = program.imported(model, tokenizer)
    out = program.folder / f"written{program.count}"
    written = program.run("export", ours, "--out", out).split()[-1]
    again = getattr(transformers, written).from_pretrained(out).eval().double()
    reader = transformers.AutoTokenizer.from_pretrained(out)
    worst = 0
    for pair in pairs:
        with torch.no_grad():
            one, other = (each(**splitter(*pair, return_tensors="pt"))
                          for each, splitter in ((again, reader), (model, tokenizer)))
        worst = max(worst, difference(one.start_logits, other.start_logits),
                    difference(one.end_logits, other.end_logits))
    return worst


def reader_rows(program):
    rows = []
    pairs = list(zip(drawn_texts(12, 2, 6), drawn_texts(12, 5, 24), strict=True))
    families = [family for family in FAMILIES if family[0] in READERS]
    for name, make_config, values, make_tokenizer in [*families, CAMEMBERT]:
        kind = name + "ForQuestionAnswering"
        for what, differ in (("20 best answers in a passage", answers_differ(128, False)),
                             ("20 best answers in windows, or none", answers_differ(36, True)),
                             ("export of a reader", exported_readers_differ)):
            tokenizer = reading_tokenizer(name, make_tokenizer)
            config = make_config(vocab_size=len(tokenizer) + 3, **values)
            model = draw_weights(getattr(transformers, kind)(config), 4)
            rows.append((config.model_type, kind, what, differ(program, model, tokenizer, pairs)))
    return rows
