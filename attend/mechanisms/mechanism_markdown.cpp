#include <fmt/format.h>

#include "attend/mechanisms/mechanism_pages.h"
#include "attend/ops/attention.h"
#include "attend/ops/recurrence.h"
#include "attend/pictures/markdown.h"

namespace attend {
namespace {

constexpr const char* introduction =
    R"(# Mechanisms

    w_ij = normaliser_j(score(q_i, k_j) + bias_ij)    over the keys j in scope(i)
    c_i  = sum_j w_ij v_j

Every mechanism is four choices, **score**, **scope**, **bias** and **normaliser**, and the sources of
queries, keys and values. n queries `[n, query_depth]` over m keys `[m, key_depth]` and values
`[m, value_depth]` give weights `[n, m]` and contexts `[n, value_depth]`; axes of batch and heads may
precede them. Time and memory are for one head of depth d. The numbers in a scope or a bias,
such as the reach of a window, are examples.

In C++ a row is `mechanism("bahdanau").choices` (`attend/nn/mechanism_table.h`), which `LearnedAttention`
makes trainable; in a recurrent decoder it is `--set model.mechanism=bahdanau`; for numbers in files
use the command in its row below; `--steps` instead of `--weights --out` prints the arithmetic.

`attend mechanisms --markdown` prints this page.

![family tree of the mechanisms](mechanisms/family.svg)

A line leads from a mechanism to the rows that change it; the colour is what they change.
`attend mechanisms --since 2024` lists the newest.

## The pictures

![weights from 0 to 1](mechanisms/legend.svg)

All show one pair of sentences from the package descriptions of Debian. A recurrent encoder and decoder
with additive attention were trained on such pairs (`tools/mechanisms_pair.py` says how); the encoder's
annotation of each English word and the decoder's state before each German word are in
[pair.json](mechanisms/pair.json). Each row of this page then got its own parameters, and a linear layer
each for queries and keys. Adam fitted them until the contexts were near a target. Between the
sentences the target is the contexts of the trained model. Within one sentence it is the annotation of
each word, from the other words; if later words are out of scope, it is the annotation of the next word,
from earlier words. For learned queries it is three contexts such that each annotation is near one.
Windows and grids are smaller than the examples, to suit nine words. Each picture shows the weights of
its row after the fit: rows are queries, columns keys. Weights above 1 or below 0, which some
normalisers give, are drawn as 1 and 0. `attend mechanisms --pictures docs/mechanisms` draws them
again, to the same bytes on the same machine.

)";

std::string choices_line(const AttentionChoices& choices) {
  std::string text =
      fmt::format("score {}, scope {}", markdown_code(choices.score), markdown_code(choices.scope));
  if (!choices.bias.empty()) text += fmt::format(", bias {}", markdown_code(choices.bias));
  return text + fmt::format(", normaliser {}", markdown_code(choices.normaliser));
}

// Only the choices that differ from self-attention.
std::string choices_cell(const AttentionChoices& choices) {
  const AttentionChoices plain;
  std::string text;
  const auto add = [&](std::string_view choice, std::string_view usual) {
    if (choice != usual)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", markdown_code(choice));
  };
  add(choices.score, plain.score);
  add(choices.scope, plain.scope);
  add(choices.bias, plain.bias);
  add(choices.normaliser, plain.normaliser);
  return text;
}

std::string overview_row(const Mechanism& row) {
  return fmt::format("| [{0}](#{0}) | {1} | {2} | {3} | {4} | {5} | {6} |\n", row.name, row.year,
                     choices_cell(row.choices), markdown_cell(row.time), markdown_cell(row.space),
                     markdown_cell(row.cache), markdown_cell(row.used_by));
}

std::string overview() {
  std::string text =
      "## All of them\n\nOrdered by what they change, then by year. Time and memory are for n "
      "queries over m keys of depth d;\nthe cache is in numbers per head and token. The table "
      "omits the choices\n`scaled_dot`, `all` and `softmax`.\n";
  for (const ChangeName& one : change_names()) {
    text += fmt::format(
        "\n**{}**\n\n| mechanism | year | choices | time | memory | cache | used by |\n"
        "|---|---|---|---|---|---|---|\n",
        one.title);
    for (const Mechanism* row : mechanisms_that_change(one.change)) text += overview_row(*row);
  }
  return text + "\n";
}

std::string entry(const Mechanism& row) {
  std::string text = fmt::format(
      "### {0}\n\n<img src=\"mechanisms/{0}.svg\" align=\"right\" alt=\"weights of {0}\">\n\n"
      "{1}. {2}.\n\n    {3}\n\n| | |\n|---|---|\n",
      row.name, row.title, markdown_cell(row.source), row.formula);
  const auto line = [&](std::string_view label, const std::string& what) {
    if (!what.empty()) text += fmt::format("| {} | {} |\n", label, what);
  };
  line("changes",
       fmt::format("{}{}", change_name(row.change),
                   row.parent.empty() ? "" : fmt::format(" of [{0}](#{0})", row.parent)));
  line("used by", markdown_cell(row.used_by));
  line("queries", markdown_cell(row.queries));
  line("keys and values", markdown_cell(row.memory));
  line("choices", choices_line(row.choices));
  std::string parameters;
  for (const ChoiceParameter& one : parameters_of(row))
    parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", markdown_code(one.name),
                              markdown_code(fmt::format("[{}]", one.shape)));
  line("parameters", parameters);
  line("time; memory", fmt::format("{}; {}", markdown_cell(row.time), markdown_cell(row.space)));
  line("carries", markdown_cell(row.carries));
  line("cache per token and head", markdown_cell(row.cache));
  line("runs", markdown_cell(row.paths));
  line("module", row.module.empty() ? "" : markdown_cell(row.module));
  line("in a recurrent decoder",
       row.refusal.empty() ? fmt::format("yes, of query {}", markdown_code(row.decoder_query))
                           : fmt::format("no: {}", markdown_cell(row.refusal)));
  return text + fmt::format("\n    {}\n\n<br clear=\"right\">\n\n", compute_command_of(row));
}

std::string scores() {
  std::string text = "## Scores\n\n| score | formula | source | parameters |\n|---|---|---|---|\n";
  for (const ScoreRow& row : score_table()) {
    std::string parameters;
    for (const ChoiceParameter& one : parameters_of(AttentionChoices{std::string(row.name)}))
      parameters += fmt::format("{}{}: {}{}", parameters.empty() ? "" : "<br>",
                                markdown_code(fmt::format("{} [{}]", one.name, one.shape)),
                                markdown_cell(one.meaning), one.required ? "" : " (optional)");
    text += fmt::format("| {} | {} | {} | {} |\n", markdown_code(row.name),
                        markdown_code(row.formula), markdown_cell(row.source), parameters);
  }
  return text + "\nAny parameter may have a leading axis of heads.\n\n";
}

std::string other_choices() {
  std::string text = "## Scopes\n\n| scope | written | keys |\n|---|---|---|\n";
  for (const ScopeRow& row : scope_table())
    text += fmt::format("| {} | {} | {} |\n", markdown_code(row.name),
                        row.parse ? markdown_code(row.syntax)
                                  : fmt::format("a tensor, {}", markdown_code(row.syntax)),
                        markdown_cell(row.meaning));
  text += "\nScopes intersect with `&` and unite with `|`.\n\n## Biases\n\n";
  text += "| bias | formula | source | parameters |\n|---|---|---|---|\n";
  for (const BiasRow& row : bias_table()) {
    std::string parameters;
    for (const BiasParameter& one : row.parameters)
      parameters += fmt::format("{}{}: {}", parameters.empty() ? "" : "<br>",
                                markdown_code(fmt::format("{} {}", one.name, one.shape)),
                                markdown_cell(one.meaning));
    text += fmt::format("| {} | {} | {} | {} |\n", markdown_code(row.name),
                        markdown_code(row.formula), markdown_cell(row.source), parameters);
  }
  text += "\nBiases add up with `+`.\n\n## Normalisers\n\n";
  text += "| normaliser | formula | source |\n|---|---|---|\n";
  for (const NormaliserRow& row : normaliser_table())
    text += fmt::format("| {} | {} | {} |\n", markdown_code(row.syntax), markdown_code(row.formula),
                        markdown_cell(row.source));
  return text;
}

std::string recurrences() {
  std::string text =
      "\n## Linear recurrences\n\nA state S of `[depth, value depth]` per head instead of weights: "
      "`o_t = scale S_t^T q_t`. Cost and memory are\nlinear in the number of tokens; a step of "
      "decoding needs only the state. `g_t` is the logarithm of a decay and at\nmost 0. `attend "
      "recurrence` computes them for numbers in files; in C++ `linear_recurrence()`\n"
      "(`attend/ops/recurrence.h`).\n\n| recurrence | year | state | source | "
      "used by |\n|---|---|---|---|---|\n";
  for (const RecurrenceRow& row : recurrence_table())
    text += fmt::format("| {} | {} | {} | {} | {} |\n", markdown_code(row.name), row.year,
                        markdown_code(row.formula), markdown_cell(row.source),
                        markdown_cell(row.used_by));
  return text;
}

}  // namespace

std::string mechanisms_markdown() {
  std::string text = introduction + overview();
  for (const ChangeName& one : change_names()) {
    text += fmt::format("## {}\n\n", one.title);
    for (const Mechanism* row : mechanisms_that_change(one.change)) text += entry(*row);
  }
  return text + scores() + other_choices() + recurrences();
}

}  // namespace attend
