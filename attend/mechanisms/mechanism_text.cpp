#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "attend/mechanisms/compute_modules.h"
#include "attend/mechanisms/mechanism_pages.h"
#include "attend/ops/attention.h"
#include "attend/ops/recurrence.h"

namespace attend {
namespace {

constexpr size_t text_columns = 100;
constexpr size_t name_column = 23;   // after two spaces and the longest name
constexpr size_t label_column = 14;  // on the page of one row

// Wraps `text` from column `indent` on; the indent of the first line is already there.
std::string wrapped(std::string_view text, size_t indent) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    if (column > indent && column + 1 + word.size() > text_columns) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

std::string labelled(std::string_view label, std::string_view text, size_t column) {
  return fmt::format("  {:{}}{}\n", label, column - 2, wrapped(text, column));
}

// Name and formula, then the source, in a line of its own if it does not fit.
std::string entry(std::string_view name, std::string_view formula, std::string_view source) {
  const std::string one = fmt::format("{:36} {}", formula, source);
  if (name_column + one.size() <= text_columns) return labelled(name, one, name_column);
  return labelled(name, formula, name_column) + labelled("", source, name_column);
}

std::string parameter_line(const ChoiceParameter& one) {
  return fmt::format("{} [{}]{}: {}", one.name, one.shape, one.required ? "" : ", optional",
                     one.meaning);
}

std::string text_of_mechanisms(int since) {
  std::string text =
      "Mechanisms: choices of score, scope, bias and normaliser, and the sources of q, k and v\n"
      "\n";
  for (const Mechanism& row : mechanism_table()) {
    if (row.year < since) continue;
    text += labelled(row.name, fmt::format("{} ({})", row.title, row.source), name_column);
    text += labelled("", row.formula, name_column);
  }
  return text;
}

std::string text_of_scores() {
  std::string text = "\nScores: how well query q fits key k; D is their depth\n\n";
  for (const ScoreRow& row : score_table()) {
    text += entry(row.name, row.formula, row.source);
    for (const ChoiceParameter& one : parameters_of(AttentionChoices{std::string(row.name)}))
      text += fmt::format("{:{}}{}\n", "", name_column + 2,
                          wrapped(parameter_line(one), name_column + 2));
  }
  return text + "\n  Any parameter may have a leading axis of heads.\n";
}

std::string text_of_choices() {
  std::string text =
      "\nScopes: the keys j that query i may attend to; they intersect and unite\n\n";
  for (const ScopeRow& row : scope_table())
    text += entry(row.name, row.parse ? row.syntax : "a tensor", row.meaning);
  text +=
      "\n"
      "Biases: terms added to the scores; several add up\n"
      "\n";
  for (const BiasRow& row : bias_table()) {
    text += entry(row.name, row.formula, row.source);
    for (const BiasParameter& one : row.parameters)
      text += fmt::format(
          "{:{}}{}\n", "", name_column + 2,
          wrapped(fmt::format("{} {}: {}", one.name, one.shape, one.meaning), name_column + 2));
  }
  text += "\nNormalisers: scores s_ij to weights w_ij\n\n";
  for (const NormaliserRow& row : normaliser_table())
    text += entry(row.syntax, row.formula, row.source);
  return text;
}

std::string text_of_recurrences(int since) {
  std::string text =
      "\n"
      "Linear recurrences: a state S instead of weights, o_t = scale S_t^T q_t (attend "
      "recurrence)\n"
      "\n";
  for (const RecurrenceRow& row : recurrence_table())
    if (row.year >= since) text += entry(row.name, row.formula, row.source);
  return text;
}

std::string files_of(const std::vector<ChoiceParameter>& parameters) {
  std::string text;
  for (const ChoiceParameter& one : parameters)
    if (one.required) text += fmt::format(" --param {0}={0}.npy", one.name);
  return text;
}

}  // namespace

std::vector<ChoiceParameter> parameters_of(const Mechanism& row) {
  std::vector<ChoiceParameter> parameters = parameters_of(row.choices);
  if (const ComputeModule* module = compute_module(&row))
    parameters.insert(parameters.end(), module->parameters.begin(), module->parameters.end());
  return parameters;
}

std::string compute_command_of(const Mechanism& row) {
  std::string extra = files_of(parameters_of(row));
  // A centre can be given in two ways; a row with a predicted centre uses these parameters.
  if (around_reach(row.choices.scope))
    extra += " --param centre_W_p=centre_W_p.npy --param centre_v_p=centre_v_p.npy";
  return fmt::format(
      "attend compute --mechanism {} --query q.npy --key k.npy --value v.npy{} --weights "
      "--out result.npz",
      row.name, extra);
}

std::string mechanisms_text(int since) {
  return "w_ij = normaliser_j(score(q_i, k_j) + bias_ij) over the keys j in scope(i)\n"
         "c_i  = sum_j w_ij v_j\n\n" +
         text_of_mechanisms(since) + (since > 0 ? "" : text_of_scores() + text_of_choices()) +
         text_of_recurrences(since) +
         "\n"
         "attend mechanisms NAME describes one mechanism.\n";
}

std::string mechanism_text(const Mechanism& row) {
  std::string text = fmt::format("{}: {}\n\n", row.name, row.title);
  const auto line = [&](std::string_view label, std::string_view what) {
    if (!what.empty()) text += labelled(label, what, label_column + 2);
  };
  line("source", row.source);
  line("changes", fmt::format("{}{}{}", change_name(row.change), row.parent.empty() ? "" : " of ",
                              row.parent));
  line("used by", row.used_by);
  line("formula", row.formula);
  line("queries", row.queries);
  line("keys, values", row.memory);
  const ScoreRow& score = score_row(row.choices.score);
  line("score", fmt::format("{}: {}", score.name, score.formula));
  line("scope", row.choices.scope);
  line("bias", row.choices.bias);
  line("normaliser", fmt::format("{}: {}", row.choices.normaliser,
                                 Normaliser(row.choices.normaliser).row().formula));
  std::string_view label = "parameters";
  for (const ChoiceParameter& one : parameters_of(row)) {
    line(label, parameter_line(one));
    label = "";
  }
  line("time", row.time);
  line("memory", row.space);
  line("carries", row.carries);
  line("cache", row.cache);
  line("runs", row.paths);
  line("module", row.module);
  if (const ComputeModule* module = compute_module(&row)) line("with it", module->formula);
  line("decoder", row.refusal.empty() ? fmt::format("--set model.mechanism={}, query {}", row.name,
                                                    row.decoder_query)
                                      : fmt::format("not in a recurrent decoder: {}", row.refusal));
  line("command", compute_command_of(row));
  return text +
         "\n  n queries [n, query_depth] over m keys [m, key_depth] and values [m, value_depth] "
         "give\n"
         "  weights [n, m] and contexts [n, value_depth]; axes of batch and heads may precede "
         "these.\n";
}

}  // namespace attend
