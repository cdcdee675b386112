#include <fmt/format.h>

#include "attend/explain/mechanism_pages.h"
#include "attend/ops/attention.h"

namespace attend {
namespace {

constexpr const char* introduction =
    R"(# Mechanisms

    w_ij = normaliser_j(score(q_i, k_j) + bias_ij)    over the keys j in scope(i)
    c_i  = sum_j w_ij v_j

Every mechanism is four choices, **score**, **scope**, **bias** and **normaliser**, and where queries,
keys and values come from. n queries `[n, query_depth]` over m keys `[m, key_depth]` and values
`[m, value_depth]` give weights `[n, m]` and contexts `[n, value_depth]`; axes of batch and heads may
stand before them. Time and memory are those of one head of depth d. The numbers in a scope or a bias,
such as the reach of a window, are examples.

In C++ a row is `mechanism("bahdanau").choices` (`attend/nn/mechanism_table.h`), which `LearnedAttention`
makes trainable; in a recurrent decoder it is `--set model.mechanism=bahdanau`; on numbers in files it
is the command that stands with it, and `--steps` in place of `--weights --out` writes out the
arithmetic.

This page is what `attend mechanisms --markdown` prints.

## The pictures

![weights from 0 to 1](mechanisms/legend.svg)

All show one pair of sentences from the package descriptions of Debian. A recurrent encoder and decoder
with additive attention were trained on such pairs (`tools/mechanisms_pair.py` says how); the encoder's
annotation of each English word and the decoder's state before each German word are in
[pair.json](mechanisms/pair.json). Each row of this page then got its own parameters, and a linear layer
each for queries and keys, fitted by Adam until its contexts came near a target: between the sentences,
the contexts of the trained model; within one, the annotation of the same word from those of the others
or, where later words are out of scope, of the next word from those before it; of learned queries, three
contexts such that each annotation is near one. Windows and grids are smaller than the examples, to suit
nine words. The picture is that row's
own formula with what it then had: rows are queries, columns keys. Weights above 1 or below 0, which
some normalisers give, are drawn as 1 and 0. `attend mechanisms --pictures docs/mechanisms` draws them
again, to the same bytes on the same machine.

)";

std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '<' || c == '[' || c == '~' || c == '^')
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// In a table even code needs its bars escaped.
std::string code(std::string_view text) {
  if (text.empty()) return "-";
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return fmt::format("`{}`", escaped);
}

std::string choices_line(const AttentionChoices& choices) {
  std::string text = fmt::format("score {}, scope {}", code(choices.score), code(choices.scope));
  if (!choices.bias.empty()) text += fmt::format(", bias {}", code(choices.bias));
  return text + fmt::format(", normaliser {}", code(choices.normaliser));
}

std::string overview() {
  std::string text =
      "## All of them\n\n| mechanism | score | scope | bias | normaliser | source |\n"
      "|---|---|---|---|---|---|\n";
  for (const Mechanism& row : mechanism_table())
    text += fmt::format("| [{0}](#{0}) | {1} | {2} | {3} | {4} | {5} |\n", row.name,
                        code(row.choices.score), code(row.choices.scope), code(row.choices.bias),
                        code(row.choices.normaliser), cell(row.source));
  return text + "\n";
}

std::string entry(const Mechanism& row) {
  std::string text = fmt::format(
      "### {0}\n\n<img src=\"mechanisms/{0}.svg\" align=\"right\" alt=\"weights of {0}\">\n\n"
      "{1}. {2}.\n\n    {3}\n\n| | |\n|---|---|\n",
      row.name, row.title, cell(row.source), row.formula);
  const auto line = [&](std::string_view label, const std::string& what) {
    if (!what.empty()) text += fmt::format("| {} | {} |\n", label, what);
  };
  line("queries", cell(row.queries));
  line("keys and values", cell(row.memory));
  line("choices", choices_line(row.choices));
  std::string parameters;
  for (const ChoiceParameter& one : parameters_of(row))
    parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", code(one.name),
                              code(fmt::format("[{}]", one.shape)));
  line("parameters", parameters);
  line("time; memory", fmt::format("{}; {}", cell(row.time), cell(row.space)));
  line("carries", cell(row.carries));
  line("runs", cell(row.paths));
  line("module", row.module.empty() ? "" : cell(row.module));
  line("in a recurrent decoder", row.refusal.empty()
                                     ? fmt::format("yes, of query {}", code(row.decoder_query))
                                     : fmt::format("no: {}", cell(row.refusal)));
  return text + fmt::format("\n    {}\n\n<br clear=\"right\">\n\n", compute_command_of(row));
}

std::string scores() {
  std::string text = "## Scores\n\n| score | formula | source | parameters |\n|---|---|---|---|\n";
  for (const ScoreRow& row : score_table()) {
    std::string parameters;
    for (const ChoiceParameter& one : parameters_of(AttentionChoices{std::string(row.name)}))
      parameters += fmt::format("{}{}: {}{}", parameters.empty() ? "" : "<br>",
                                code(fmt::format("{} [{}]", one.name, one.shape)),
                                cell(one.meaning), one.required ? "" : " (optional)");
    text += fmt::format("| {} | {} | {} | {} |\n", code(row.name), code(row.formula),
                        cell(row.source), parameters);
  }
  return text + "\nAny parameter may have a leading axis of heads.\n\n";
}

std::string other_choices() {
  std::string text = "## Scopes\n\n| scope | written | keys |\n|---|---|---|\n";
  for (const ScopeRow& row : scope_table())
    text +=
        fmt::format("| {} | {} | {} |\n", code(row.name),
                    row.parse ? code(row.syntax) : fmt::format("a tensor, {}", code(row.syntax)),
                    cell(row.meaning));
  text += "\nScopes intersect with `&` and unite with `|`.\n\n## Biases\n\n";
  text += "| bias | formula | source | parameters |\n|---|---|---|---|\n";
  for (const BiasRow& row : bias_table()) {
    std::string parameters;
    for (const BiasParameter& one : row.parameters)
      parameters += fmt::format("{}{}: {}", parameters.empty() ? "" : "<br>",
                                code(fmt::format("{} {}", one.name, one.shape)), cell(one.meaning));
    text += fmt::format("| {} | {} | {} | {} |\n", code(row.name), code(row.formula),
                        cell(row.source), parameters);
  }
  text += "\nBiases add up with `+`.\n\n## Normalisers\n\n";
  text += "| normaliser | formula | source |\n|---|---|---|\n";
  for (const NormaliserRow& row : normaliser_table())
    text +=
        fmt::format("| {} | {} | {} |\n", code(row.syntax), code(row.formula), cell(row.source));
  return text;
}

}  // namespace

std::string mechanisms_markdown() {
  std::string text = introduction + overview();
  for (const Mechanism& row : mechanism_table()) text += entry(row);
  return text + scores() + other_choices();
}

}  // namespace attend
