#pragma once

#include <string>
#include <vector>

namespace attend {

struct TextPrompt {
  std::string name;
  std::string text;  // written before a text, without a blank between them
};

// Prompts such as "query: ", which precede a text, or the first text of a pair.
struct TextPrompts {
  std::vector<TextPrompt> rows = {};
  std::string usual = {};  // name of the prompt if a call names none; empty: no prompt
  bool are_pooled = true;  // whether the tokens of a prompt are part of the text vector

  // The text of a prompt; an empty name means the usual prompt. Error on an unknown name.
  std::string text(const std::string& name = "") const;
};

// Reads the setting `group`.prompts, a JSON object of names and texts, such as {"query": "query:
// "}, and `group`.default_prompt, the usual name; an empty string has no prompts. Error on anything
// else, and on an unknown usual name.
TextPrompts read_text_prompts(const std::string& group, const std::string& json,
                              const std::string& usual);

}  // namespace attend
