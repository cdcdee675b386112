#pragma once

#include <string>

namespace attend {

// What an export made.
struct ExportedModel {
  std::string architecture;  // the class of transformers that loads it
};

// The other way of import_model: writes a model of type embedder, encoder, classifier, tagger, vit,
// lm or transformer as a folder that transformers loads: config.json, model.safetensors and what
// splits texts or scales images; for an embedder also what sentence-transformers reads. The classes
// are BERT's, or DistilBERT's for labels below relu, ModernBERT's, ViT's, DeiT's, GPT-2's and
// Marian's. What import_model makes of the folder has the same settings, except a length penalty
// of a search without beams.
//
// Errors name the setting that no such class has, and `out` where it is there already.
ExportedModel export_model(const std::string& folder, const std::string& out);

}  // namespace attend
