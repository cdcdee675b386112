#pragma once

#include <string>
#include <vector>

namespace attend {

struct TextPrompt {
  std::string name;
  std::string text;  // written before a text, without a blank between them
};

// Prompts of a sentence encoder, such as "query: ", which precede a text.
struct TextPrompts {
  std::vector<TextPrompt> rows = {};
  std::string usual = {};  // name of the prompt if a call names none; empty: no prompt
  bool are_pooled = true;  // whether the tokens of a prompt are part of the text vector

  // The text of a prompt; an empty name means the usual prompt. Error on an unknown name.
  std::string text(const std::string& name = "") const;
};

// Reads a JSON object of names and texts, such as {"query": "query: "}; an empty string has no
// prompts. Error on anything else, and on an unknown usual name.
TextPrompts read_text_prompts(const std::string& json, const std::string& usual, bool are_pooled);

}  // namespace attend
