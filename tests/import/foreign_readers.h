#pragma once

#include <string>
#include <string_view>

#include "attend/import/foreign_model-inl.h"
#include "attend/import/foreign_tokenizer-inl.h"
#include "attend/import/hub_folder-inl.h"
#include "attend/import/image_processor-inl.h"
#include "attend/import/sentence_encoder-inl.h"
#include "tests/fuzz/fuzz.h"

// Readers of the files of a foreign folder, with checks of their results.
namespace attend::fuzz {

// Every config.json that a type accepts describes a network.
inline void read_config(std::string_view document) {
  for (const auto read :
       {internal::read_bert, internal::read_distilbert, internal::read_roberta,
        internal::read_camembert, internal::read_vit, internal::read_deit, internal::read_gpt2,
        internal::read_modernbert, internal::read_marian, internal::read_electra,
        internal::read_albert, internal::read_mpnet, internal::read_deberta})
    accept_errors([&] {
      const std::string name = "input";
      const Json json = parse_json(document, name);
      const internal::ForeignModel model = read({json, name});
      expect(model.layers > 0 && model.positions > model.first_position);
      expect(model.tokens > 0 || model.images.has_value());
      model.config.chosen().check();
    });
}

inline void read_sentences(const std::string& folder) {
  EmbedderConfig config;
  internal::read_sentence_encoder(folder, config);
  expect(config.maximum_source_length > 0);
}

inline void read_tokenizer(const std::string& folder) {
  const internal::ForeignTokenizer tokenizer =
      internal::read_foreign_tokenizer(folder, internal::read_tokenizer_settings(folder), {});
  expect(!tokenizer.mask || *tokenizer.mask < tokenizer.tokenizer.size());
}

// Reads the older files of RoBERTa, in their own folder.
inline void read_byte_pairs(const std::string& folder) {
  const internal::ForeignTokenizer tokenizer = internal::read_foreign_tokenizer(
      folder + "/pairs", internal::read_tokenizer_settings(folder + "/pairs"),
      {.special = {"<unk>", "</s>", "</s>", "<pad>", ""}});
  expect(tokenizer.tokenizer.split("a b").size() > 2);
}

inline void read_sides(const std::string& folder) {
  const internal::ForeignTokenizer tokenizer =
      internal::read_side_tokenizers(folder, internal::read_tokenizer_settings(folder));
  expect(tokenizer.target && tokenizer.unknown && *tokenizer.unknown < tokenizer.size());
  tokenizer.tokenizer.join(tokenizer.tokenizer.split(">>a<< a b</s>"));
}

inline void read_tokenizers(const std::string& folder) {
  accept_errors([&] { read_sides(folder); }, folder);
  read_tokenizer(folder);
}

inline void read_images(const std::string& folder) {
  internal::ForeignImages images{.frames = {.image_height = 6, .image_width = 6, .colours = true}};
  internal::Notes notes;
  internal::read_image_processor(folder, images, notes);
  expect(images.pixels.size() == 3);
}

inline void read_tensors(const std::string& folder) {
  expect(internal::read_foreign_tensors(folder).tensors.size() == 1);
}

}  // namespace attend::fuzz
