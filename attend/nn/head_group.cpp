#include "attend/nn/head_group.h"

#include "attend/base/error.h"
#include "attend/nn/positions.h"
#include "attend/ops/normalisers.h"
#include "attend/ops/scopes.h"
#include "attend/ops/scores.h"

namespace attend {
namespace {

void check_heads(const HeadGroup& group, int64_t head_depth) {
  if (group.heads < 1 || group.key_heads < 0 || group.heads % group.key_head_count() != 0)
    fail(
        "[multi-head attention] {} heads share {} heads of keys; the second must divide the first "
        "and be 1 or more",
        group.heads, group.key_heads);
  if (!group.rotary) return;
  if (head_depth % 2 != 0)
    fail("[multi-head attention] heads have depth {}; rotary rotates pairs, make it even",
         head_depth);
  if (group.rotation.scaling.rule == RotaryRule::dynamic)
    fail(
        "[multi-head attention] rotary scaling dynamic changes the angles of earlier keys with "
        "each position, so that steps would differ from whole sequences; take yarn, linear or "
        "llama3");
  rotary_frequencies(group.rotation, head_depth);  // throws on numbers out of range
}

bool is_causal_text(const std::string& scope) {
  return !around_reach(scope) && is_causal(parse_scope(scope));
}

// Error if heads with segments or mixed scores have other choices.
void check_softmax_form(const HeadGroup& group, size_t groups) {
  const ScoreRow& score = score_row(group.choices.score);
  const bool has_segments = group.memory_segment > 0;
  const bool reads_earlier = is_causal_text(group.choices.scope) &&
                             (!has_segments || last_key(parse_scope(group.choices.scope)) == 0);
  if (group.forms() == 1 && score.compares_vectors() && reads_earlier &&
      group.choices.bias.empty() && is_plain_softmax(group.choices) &&
      (!has_segments || groups == 1))
    return;
  fail(
      "[multi-head attention] {} read earlier keys by softmax without a bias; got score {}, scope "
      "{}, bias {} and normaliser {}, or a second form of heads; take scaled_dot, causal, none and "
      "softmax",
      has_segments ? "segments with a memory" : "mixed scores", score.name, group.choices.scope,
      in_quotes(group.choices.bias), group.choices.normaliser);
}

void check_selective(const HeadGroup& group) {
  const ScoreRow& score = score_row(group.choices.score);
  const NormaliserRow& normaliser = Normaliser(group.choices.normaliser).row();
  if (group.forms() > 1 || !score.compares_vectors() || normaliser.sequential ||
      normaliser.running_sums || !is_causal_text(group.choices.scope))
    fail(
        "[multi-head attention] selective heads lower scores for later queries; got score {}, "
        "scope {} and normaliser {}, or a second form of heads; take scaled_dot, causal, softmax "
        "and one form",
        score.name, group.choices.scope, normaliser.name);
}

// Error if the group's form does not support its other fields.
void check_form(const HeadGroup& group, size_t groups) {
  const ScoreRow& score = score_row(group.choices.score);
  const NormaliserRow& normaliser = Normaliser(group.choices.normaliser).row();
  const bool looks_back = score.map_past != nullptr || normaliser.sequential;
  if (group.differential &&
      (group.heads % 2 != 0 || group.key_head_count() % 2 != 0 || group.latent_depth > 0 ||
       looks_back || normaliser.running_sums || around_reach(group.choices.scope)))
    fail(
        "[multi-head attention] {} heads subtract their weights in pairs, over {} heads of keys "
        "with score {}, scope {} and normaliser {}; take even numbers, no latent depth, and "
        "choices that form all weights and neither look back nor predict centres",
        group.heads, group.key_head_count(), score.name, group.choices.scope, normaliser.name);
  if (group.branches.block > 0 &&
      (group.differential || group.latent_depth > 0 || !group.choices.bias.empty() || looks_back ||
       !normaliser.takes_sink || !is_causal_text(group.choices.scope)))
    fail(
        "[multi-head attention] sparse branches read earlier positions by softmax without a bias; "
        "got scope {}, bias {} and normaliser {}; take causal, none and softmax, and heads that "
        "are neither differential nor latent",
        group.choices.scope, in_quotes(group.choices.bias), normaliser.name);
  if (group.indexer.keys > 0 && (group.differential || group.latent_depth > 0 ||
                                 group.branches.block > 0 || looks_back || normaliser.running_sums))
    fail(
        "[multi-head attention] an indexer chooses keys for plain heads with a normaliser that "
        "does not look back; got normaliser {}, or a second form of heads; take one form and "
        "softmax",
        normaliser.name);
  if (group.selective) check_selective(group);
  if (group.memory_segment > 0 || group.mix.queries > 0) check_softmax_form(group, groups);
  if (group.latent_depth == 0) return;
  const bool plain = score.compares_vectors() && !looks_back;
  if (groups != 1 || group.key_heads != 0 || group.rotary || !plain || normaliser.running_sums)
    fail(
        "[multi-head attention] latent heads are the only group, with key_heads 0, no other "
        "rotation, score dot or scaled_dot and a normaliser that does not look back; got {} "
        "groups, key_heads {}, score {} and normaliser {}",
        groups, group.key_heads, score.name, normaliser.name);
}

}  // namespace

void check_head_group(const HeadGroup& group, int64_t head_depth, size_t groups) {
  check_heads(group, head_depth);
  check_form(group, groups);
}

}  // namespace attend
