#include "attend/data/text_prompts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attend/base/error.h"
#include "attend/base/find_row.h"

namespace attend {

std::string TextPrompts::text(const std::string& name) const {
  const std::string& chosen = name.empty() ? usual : name;
  if (chosen.empty()) return "";
  if (rows.empty())
    fail("the model has no named prompts, so it lacks {}; write the prompt before the text",
         in_quotes(chosen));
  return find_row(rows, "prompt", chosen).text;
}

TextPrompts read_text_prompts(const std::string& group, const std::string& json,
                              const std::string& usual) {
  TextPrompts prompts{.usual = usual};
  if (!json.empty()) {
    using Json = nlohmann::ordered_json;
    const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    bool is_valid = document.is_object();
    for (const auto& [name, text] : document.items()) {
      is_valid = is_valid && text.is_string() && !name.empty();
      if (is_valid) prompts.rows.push_back({name, text.get<std::string>()});
    }
    if (!is_valid)
      fail(R"({}.prompts is {}; write a JSON object such as {{"query": "query: "}})", group,
           in_quotes(json));
  }
  const auto has_name = [&](const TextPrompt& row) { return row.name == usual; };
  if (!usual.empty() && std::none_of(prompts.rows.begin(), prompts.rows.end(), has_name))
    fail("{0}.default_prompt is {1}, which {0}.prompts lacks", group, in_quotes(usual));
  return prompts;
}

}  // namespace attend
