#include <fmt/format.h>

#include <memory>

#include "attend/cli/commands.h"
#include "attend/import/import_model.h"

namespace attend {

void add_import_command(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  auto* command = app.add_subcommand(
      "import", "Convert a trained model in the format of transformers to a model folder");
  command
      ->add_option(
          "folder", *folder,
          "folder with config.json, model.safetensors or its shards, and tokenizer.json or older "
          "files (vocab.txt, vocab.json and merges.txt, sentencepiece.bpe.model, spiece.model, "
          "spm.model); for translators source.spm, target.spm and vocab.json, for images "
          "preprocessor_config.json; or the checkpoint20.npz of g2p-en; or a .keras file with the "
          ".pkl of its tokenizers next to it")
      ->required();
  command->add_option("--out", *out, "model folder to write")->required();
  command->footer(
      "Examples:\n"
      "  attend import all-MiniLM-L6-v2 --out minilm\n"
      "  attend embed minilm < sentences.txt\n"
      "Types: bert, distilbert, roberta, xlm-roberta, camembert, modernbert, electra, albert,\n"
      "mpnet, deberta-v2, esm: encoders (type embedder), masked words (encoder), labels\n"
      "(classifier), labels of tokens (tagger); the first six also parts of passages (reader);\n"
      "vit, deit: labels of images (vit); gpt2: continuations (lm); marian, m2m_100 (NLLB),\n"
      "mbart: translations (transformer); t5, mt5: answers to lines (transformer). Files of\n"
      "Keras: additive attention between GRUs (seq2seq).\n"
      "If a setting or a tensor changes results and is not supported, the command names it and\n"
      "writes nothing. Notes on standard error name ignored settings. The search options of\n"
      "generation_config.json become decode.* of config.toml.");
  command->callback([folder, out] {
    const ImportedModel made = import_model(*folder, *out);
    for (const std::string& note : made.notes) fmt::print(stderr, "attend: note: {}\n", note);
    fmt::print("{}: model.type {} of {}, {} weights", *out, made.type, made.architecture,
               made.weights);
    if (made.tokens > 0) fmt::print(", {} tokens", made.tokens);
    fmt::print("\n");
  });
}

}  // namespace attend
