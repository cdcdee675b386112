#include "attend/data/text_config.h"

#include "attend/data/data_format.h"
#include "attend/data/source_kind.h"
#include "attend/data/units.h"

namespace attend {

namespace {

std::vector<std::string> text_units() {
  std::vector<std::string> names = names_of(Units{});
  names.emplace_back(piece_units);
  names.emplace_back(tokenizer_units);
  return names;
}

}  // namespace

const DataFormatRow& TextConfig::format_row() const {
  return data_formats().at(static_cast<size_t>(format));
}

const SourceKind* TextConfig::source_kind() const { return attend::source_kind(source_units); }

Setting TextConfig::format_setting() {
  return {
      "data.format", &format,
      "what data holds: sources and targets, users and items, or a folder with nodes.tsv (node TAB "
      "split TAB class TAB features: numbers from 0, or number:value, between blanks) and "
      "edges.tsv (two nodes)"};
}

Setting TextConfig::source_units_setting() {
  std::vector<std::string> names = text_units();
  for (const SourceKind& kind : source_kinds()) names.emplace_back(kind.name);
  return {"data.source_units",
          &source_units,
          "what a token of the source is; image, sound: a patch or some windows of that file; set, "
          "images: an element, or the image of that name; molecule: an atom of SMILES, which sees "
          "those that it is bound to",
          {},
          {},
          std::move(names)};
}

Setting TextConfig::target_setting() {
  return {"data.target", &target,
          "text: an answer is text or a label; number: one number, of the types that answer with a "
          "label otherwise"};
}

Settings TextConfig::settings() {
  Settings all = {
      format_setting(),
      {"data.minimum_count", &minimum_count, "rarer tokens are treated as unknown", 1, 1e9},
  };
  append(all, format_row().settings(*this));
  if (wants_numbers()) append(all, target_scale.settings());
  return all;
}

Settings TextConfig::pair_settings() {
  Settings all = {
      target_setting(),
      source_units_setting(),
      {"data.target_units", &target_units, "what a token of the target is", {}, {}, text_units()},
      {"data.joint_vocabulary", &joint_vocabulary, "one vocabulary for both sides"},
      {.key = "data.bpe",
       .value = &bpe,
       .help = "file of byte-pair codes of both sides, of which attend data bpe train makes one",
       .is_file = true},
      {.key = "data.source_bpe",
       .value = &source_bpe,
       .help = "the same, of the source alone",
       .is_file = true},
      {.key = "data.target_bpe",
       .value = &target_bpe,
       .help = "the same, of the target alone",
       .is_file = true},
      {.key = "data.tokenizer",
       .value = &tokenizer,
       .help = "tokenizer.json or .spm of a model that others trained, of units tokenizer; texts "
               "are not normalised before",
       .is_file = true},
      {.key = "data.target_tokenizer",
       .value = &target_tokenizer,
       .help = "the same, of the target alone, which then has no special tokens of it",
       .is_file = true},
      {"data.normalise", &normalise,
       "Unicode's normal form that texts are put into, and answers come in; nfkc also takes "
       "ligatures and the like apart, none leaves texts as they are"},
      {"data.references", &references,
       "each: every line is an example; merged: lines of one source are one example, and any of "
       "their targets is right, as of the pronunciations of a word"},
      {"data.lowercase", &lowercase, "whether letters become lower-case; not those of labels"},
      {"data.tokenise", &tokenise,
       "whether words and punctuation are set apart, and put together again in answers"},
      {"data.language_token", &language_token,
       "whether a source begins with the language to answer in, such as <2de>: one token, "
       "whatever the units"},
  };
  if (source_kind() != nullptr) append(all, frames.settings());
  return all;
}

}  // namespace attend
