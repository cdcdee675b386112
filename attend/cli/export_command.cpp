#include <fmt/format.h>

#include <memory>

#include "attend/cli/commands.h"
#include "attend/import/export_model.h"

namespace attend {

void add_export_command(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  auto* command = app.add_subcommand("export", "Write a model in the format of transformers");
  command->add_option("model", *folder, "model folder")->required();
  command->add_option("--out", *out, "folder to make")->required();
  command->footer(
      "Example:\n"
      "  attend import all-MiniLM-L6-v2 --out minilm\n"
      "  attend train --data reviews.tsv --init minilm --out reviews ...\n"
      "  attend export reviews --out reviews-bert\n"
      "Types: embedder, encoder, classifier and tagger with data.source_units = tokenizer, as\n"
      "the class of transformers that has their layers; vit; lm if it was imported from GPT-2;\n"
      "transformer if it was imported from Marian, M2M100, NLLB, mBART or T5. All may be\n"
      "trained.\n"
      "If the format lacks a setting of the model, the command names it and writes nothing.");
  command->callback([folder, out] {
    const ExportedModel made = export_model(*folder, *out);
    fmt::print("{}: {}\n", *out, made.architecture);
  });
}

}  // namespace attend
