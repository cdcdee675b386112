#include "attend/data/text_config.h"

#include "attend/data/data_format.h"
#include "attend/data/source_kind.h"
#include "attend/text/units.h"

namespace attend {

namespace {

std::vector<std::string> text_units() {
  std::vector<std::string> names = names_of(Units{});
  names.emplace_back(piece_units);
  names.emplace_back(tokenizer_units);
  return names;
}

// Keys if sources can be pairs.
Settings prompt_settings(TextConfig& text) {
  return {{"data.prompts", &text.prompts,
           "named prompts that can precede the first text of a pair, as a JSON object of names and "
           "texts; empty: none"},
          {"data.default_prompt", &text.default_prompt,
           "name of the prompt of pairs for which none is named; empty: no prompt"}};
}

}  // namespace

const DataFormatRow& TextConfig::format_row() const {
  return data_formats().at(static_cast<size_t>(format));
}

const SourceKind* TextConfig::source_kind() const { return attend::source_kind(source_units); }

TextPrompts TextConfig::text_prompts() const {
  return read_text_prompts("data", prompts, default_prompt);
}

Setting TextConfig::format_setting() {
  return {"data.format", &format,
          "kind of data: sources and targets, users and items, or a folder with nodes.tsv (node "
          "TAB split TAB class TAB features: numbers from 0, or number:value, separated by blanks) "
          "and edges.tsv (two nodes)"};
}

Setting TextConfig::source_units_setting() {
  std::vector<std::string> names = text_units();
  for (const SourceKind& kind : source_kinds()) names.emplace_back(kind.name);
  return {
      "data.source_units",
      &source_units,
      "token of the source; image, sound: a patch or some windows of the named file; set: an "
      "element; images: a named image; molecule: an atom of SMILES, which sees only bonded atoms",
      {},
      {},
      std::move(names)};
}

Setting TextConfig::target_setting() {
  return {"data.target", &target,
          "text: answers are texts or labels; number: answers are one number, for model types that "
          "otherwise answer with a label; labels: answers are any number of labels, for the same "
          "types; probability: answers are a number from 0 to 1, also for these types; span: "
          "answers are "
          "a part of the second text of a pair, only for model.type reader"};
}

Setting TextConfig::pairs_setting() {
  return {"data.pairs", &pairs,
          "whether a source is two texts with a TAB between them: never; optional: if it has a "
          "TAB; always. Only model.type classifier and reader read pairs"};
}

Setting TextConfig::label_separator_setting() {
  return {"data.label_separator", &label_separator,
          "text between the labels of a target; a blank: labels are words"};
}

Settings TextConfig::settings() {
  Settings all = {
      format_setting(),
      {"data.minimum_count", &minimum_count,
       "minimum count of a known token; rarer tokens are unknown", 1, 1e9},
  };
  append(all, format_row().settings(*this));
  if (wants_numbers()) append(all, target_scale.settings());
  if (wants_labels()) all.push_back(label_separator_setting());
  return all;
}

Settings TextConfig::pair_settings() {
  Settings all = {
      target_setting(),
      source_units_setting(),
      {"data.target_units", &target_units, "token of the target", {}, {}, text_units()},
      {"data.joint_vocabulary", &joint_vocabulary,
       "whether source and target share one vocabulary"},
      {.key = "data.bpe",
       .value = &bpe,
       .help = "file of byte-pair codes for both sides, made by attend data bpe train",
       .is_file = true},
      {.key = "data.source_bpe",
       .value = &source_bpe,
       .help = "file of byte-pair codes for the source only",
       .is_file = true},
      {.key = "data.target_bpe",
       .value = &target_bpe,
       .help = "file of byte-pair codes for the target only",
       .is_file = true},
      {.key = "data.tokenizer",
       .value = &tokenizer,
       .help = "tokenizer.json or .spm of an imported model, for units tokenizer; texts are not "
               "normalised first",
       .is_file = true},
      {.key = "data.target_tokenizer",
       .value = &target_tokenizer,
       .help = "tokenizer.json or .spm for the target only; its special tokens are unused",
       .is_file = true},
      {"data.normalise", &normalise,
       "Unicode normal form of texts and answers; nfkc also splits ligatures and similar "
       "characters, none leaves texts as they are"},
      {"data.references", &references,
       "each: every line is an example; merged: lines with the same source are one example, and "
       "any of their targets is right, such as the pronunciations of a word"},
      {"data.lowercase", &lowercase,
       "whether letters of texts, but not of labels, become lower-case"},
      {"data.tokenise", &tokenise,
       "whether words and punctuation are separated, and joined again in answers"},
      {"data.language_token", &language_token,
       "whether a source begins with the language of the answer, such as <2de>, as one token for "
       "any units"},
      {"data.source_language", &source_language,
       "language of the sources, if data.tokenizer has languages; empty: its own default"},
      {"data.target_language", &target_language,
       "language of the targets, if data.tokenizer has languages"},
      {"data.fill_length", &fill_length,
       "number of tokens that shorter sources are extended to by a token <fill>, which is read as "
       "any other, as imported models may need; 0: sources keep their lengths",
       0, 1 << 20},
      pairs_setting(),
  };
  if (pairs != PairTexts::never) append(all, prompt_settings(*this));
  if (source_kind() != nullptr) append(all, frames.settings());
  return all;
}

}  // namespace attend
