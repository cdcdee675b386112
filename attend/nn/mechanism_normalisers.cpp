#include "attend/nn/mechanism_table-inl.h"

namespace attend {
namespace {

std::vector<Mechanism> of_any_keys() {
  return {
      {.name = "adaptive_entmax",
       .title = "Adaptively sparse attention",
       .source = "Correia et al. 2019; entmax: Peters et al. 2019",
       .year = 2019,
       .change = Change::normaliser,
       .parent = "entmax",
       .formula = "w_ij = max(0, (A - 1) (s_ij - t_i))^(1 / (A - 1)), t_i so that sum_j w_ij = 1; "
                  "A of a head is trained between 1 (softmax) and 2 (sparsemax)",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.normaliser = "entmax"},
       .decoder_query = "state",
       .carries = "nothing"},
      {.name = "softpick",
       .title = "Softpick",
       .source = "Zuhri et al. 2025",
       .year = 2025,
       .change = Change::normaliser,
       .parent = "cross",
       .formula = "w_ij = max(0, exp(s_ij) - 1) / (1e-8 + sum_j |exp(s_ij) - 1|): a query may "
                  "attend to nothing, so no token becomes a sink",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.normaliser = "softpick"},
       .decoder_query = "state"},
      {.name = "scalable_softmax",
       .title = "Scalable softmax",
       .source = "Nakanishi 2025",
       .year = 2025,
       .change = Change::normaliser,
       .parent = "cross",
       .used_by = "Llama 4 and Mistral Large 4 with rules of their own",
       .formula = "w_ij = softmax_j(s ln(n_i) q_i . k_j / sqrt(d)), n_i the keys in scope; s of a "
                  "head is trained, from 0.43 on",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.normaliser = "scalable"},
       .decoder_query = "state",
       .carries = "the number of keys"},
  };
}

std::vector<Mechanism> of_some_keys() {
  return {
      {.name = "stick_breaking",
       .title = "Stick-breaking attention",
       .source = "Tan et al. 2025",
       .year = 2025,
       .change = Change::normaliser,
       .parent = "masked_self",
       .formula = "w_ij = sigmoid(s_ij) prod_(j < l < i) (1 - sigmoid(s_il)), over j < i",
       .queries = "positions of a sequence",
       .memory = "the same sequence",
       .relation = Relation::same,
       .choices = {.scope = "causal:-1", .normaliser = "stick_breaking"},
       .decoder_query = "state",
       .carries = "the position",
       .refusal = "its keys are the positions before the query, and a decoder's queries are its "
                  "states; take cross, or a model of one sequence"},
      {.name = "top_k",
       .title = "Top-k attention",
       .source = "Gupta et al. 2021, 3",
       .year = 2021,
       .change = Change::normaliser,
       .parent = "cross",
       .formula = "softmax over the keys with s_ij at least the K-th largest of the row",
       .queries = any_vectors,
       .memory = any_set,
       .choices = {.normaliser = "top_k:3"},
       .decoder_query = "state"},
  };
}

}  // namespace

std::vector<Mechanism> normaliser_mechanisms() {
  std::vector<Mechanism> all = of_any_keys();
  for (const Mechanism& row : of_some_keys()) all.push_back(row);
  return all;
}

}  // namespace attend
