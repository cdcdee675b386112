#pragma once

#include <string>

namespace attend {

// Result of an export.
struct ExportedModel {
  std::string architecture;  // class of transformers that loads it
};

// Reverse of import_model: writes a model of type embedder, encoder, classifier, tagger, vit, lm or
// transformer as a folder that transformers loads: config.json, model.safetensors and the files
// that split texts or scale images. For an embedder, also writes the files of
// sentence-transformers. The classes belong to BERT, ESM-2, ModernBERT, ViT, DeiT, GPT-2 and
// Marian, and to DistilBERT for labels on top of a layer with relu. Importing the folder again
// gives the same settings, except for a length penalty without beams.
//
// Errors name the setting that no such class supports, and `out` if it exists already.
ExportedModel export_model(const std::string& folder, const std::string& out);

}  // namespace attend
