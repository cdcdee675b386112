#include <algorithm>
#include <charconv>

#include "attend/base/error.h"
#include "attend/base/find_row.h"
#include "attend/ops/biases.h"

namespace attend {
namespace {

at::Tensor exponential(const at::Tensor& trained) { return trained.exp(); }
at::Tensor up_to_two(const at::Tensor& trained) { return 2 * trained.sigmoid(); }
// Adam's steps are as small as the learning rate.
at::Tensor times_512(const at::Tensor& trained) { return 512 * trained; }

// A given number per pair.
std::vector<BiasRow> given_rows() {
  return {
      {.kind = BiasKind::dense,
       .name = "dense",
       .syntax = "dense",
       .formula = "b_ij",
       .source = "any learned or given bias",
       .parameters = {{"bias", "[batch, heads, queries, keys], axes of 1 broadcast", "the bias",
                       2}},
       .is_trained = false,
       .is_dense = true},
  };
}

// Functions of the distance.
std::vector<BiasRow> distance_rows() {
  return {
      {.kind = BiasKind::alibi,
       .name = "alibi",
       .syntax = "alibi",
       .formula = "-m |i - j|",
       .source = "Press et al. 2022",
       .parameters = {{"slopes", "[heads]", "m, positive: nearer keys weigh more", 0,
                       "slopes of Press et al. 2022 for the number of heads"}}},
      {.kind = BiasKind::kerple_log,
       .name = "kerple_log",
       .syntax = "kerple_log",
       .formula = "-p ln(1 + a |i - j|)",
       .source = "Chi et al. 2022, 5.1",
       .parameters = {{"p", "[heads]", "p, positive", 0, {}, exponential},
                      {"a", "[heads]", "a, positive", 0, {}, exponential}}},
      {.kind = BiasKind::kerple_power,
       .name = "kerple_power",
       .syntax = "kerple_power",
       .formula = "-a |i - j|^p",
       .source = "Chi et al. 2022, 5.1",
       .parameters = {{"p", "[heads]", "p, above 0 and up to 2", 0, {}, up_to_two},
                      {"a", "[heads]", "a, positive", 0, {}, exponential}}},
      {.kind = BiasKind::sandwich,
       .name = "sandwich",
       .syntax = "sandwich:N",
       .formula = "f sum_a (cos((i - j) / 10000^(2a/N)) - 1), a = 1 .. N/2",
       .source = "Chi et al. 2023, 5",
       .parameters = {{"factors", "[heads]", "f, a factor per head", 0, "heads / (8 h), h = 1 .."}},
       .numbers = {.count = 1, .least = 2, .sizes_table = false}},
  };
}

// Functions of positions that depend on the inputs.
std::vector<BiasRow> position_rows() {
  return {
      {.kind = BiasKind::forget,
       .name = "forget",
       .syntax = "forget",
       .formula = "-|c_i - c_j|, c_n = sum_(t<=n) ln sigmoid(g_t)",
       .source = "Lin et al. 2025, eq. 7-9",
       .parameters = {{"gates", "[batch, heads, keys]",
                       "g; sigmoid(g) is the share of the keys before it that later queries keep",
                       1}},
       .is_of_source = true},
      {.kind = BiasKind::cope,
       .name = "cope",
       .syntax = "cope:N",
       .formula = "s q_i . e[p_ij], p_ij = sum_(j<=t<=i) sigmoid(s q_i . k_t)",
       .source = "Golovneva et al. 2024, eq. 3-5",
       .parameters = {{"table", "[heads, N, attention_depth] or without heads",
                       "e, a vector per position, up to N - 1", 2}},
       .numbers = {.count = 1, .least = 2},
       .reads_queries = true,
       .is_dense = true},
      {.kind = BiasKind::fire,
       .name = "fire",
       .syntax = "fire:N",
       .formula = "W_2 relu(W_1 x + b_1) + b_2, x = ln(c |i - j| + 1) / ln(c max(L, i) + 1)",
       .source = "Li et al. 2024, eq. 6-8",
       .parameters = {{"W_1", "[N]", "weights of the N hidden units", 1},
                      {"b_1", "[N]", "their biases", 1},
                      {"W_2", "[heads, N]", "weights of the output", 1},
                      {"b_2", "[heads]", "its bias"},
                      {"c", "one number", "c, of the logarithm"},
                      {"threshold",
                       "one number",
                       "L, the position up to which x is absolute",
                       0,
                       {},
                       times_512}},
       .numbers = {.count = 1, .least = 1},
       .is_dense = true},
  };
}

// The two terms of disentangled attention, which differ in what the vectors are compared with.
std::vector<BiasRow> disentangled_rows() {
  const BiasNumbers numbers = {
      .count = 1, .least = 1, .factor = 2, .for_sentence = 4, .takes_distance = true};
  const std::vector<BiasParameter> parameters = {
      {"table", "[heads, 2 K, attention_depth] or without heads",
       "r, a vector per distance or bucket of distances", 2}};
  return {{.kind = BiasKind::content_to_position,
           .name = "content_to_position",
           .syntax = "content_to_position:K[,DISTANCE]",
           .formula = "q_i . r[clip(bucket(i - j) + K, 0, 2 K - 1)]",
           .source = "He et al. 2021, eq. 4",
           .parameters = parameters,
           .numbers = numbers,
           .reads_queries = true},
          {.kind = BiasKind::position_to_content,
           .name = "position_to_content",
           .syntax = "position_to_content:K[,DISTANCE]",
           .formula = "k_j . r[clip(bucket(i - j) + K, 0, 2 K - 1)]",
           .source = "He et al. 2021, eq. 4",
           .parameters = parameters,
           .numbers = numbers,
           .reads_keys = true}};
}

// Tables of distances, and a centre per query.
std::vector<BiasRow> table_rows() {
  return {
      {.kind = BiasKind::buckets,
       .name = "buckets",
       .syntax = "buckets:N[,DISTANCE]",
       .formula = "t[bucket(j - i)]",
       .source = "Raffel et al. 2020, 2.1",
       .parameters = {{"table", "[heads, buckets] or [buckets]",
                       "t, a number per bucket of distances", 1}},
       .numbers = {.count = 1, .least = 4, .takes_distance = true}},
      {.kind = BiasKind::relative_keys,
       .name = "relative_keys",
       .syntax = "relative_keys:L",
       .formula = "q_i . r[clip(j - i, -L, L) + L]",
       .source = "Shaw et al. 2018, eq. 4",
       .parameters = {{"table", "[heads, 2 L + 1, attention_depth] or without heads",
                       "r, a vector per distance", 2}},
       .numbers = {.count = 1, .least = 1, .factor = 2, .shift = 1, .for_sentence = 4},
       .reads_queries = true},
      {.kind = BiasKind::gaussian,
       .name = "gaussian",
       .syntax = "gaussian",
       .formula = "-(j - p_i)^2 / (2 s_i^2)",
       .source = "Luong et al. 2015, eq. 10",
       .parameters = {{"centres", "[batch, heads, queries]",
                       "p, the position that a query attends to", 1,
                       "S sigmoid(v_p . tanh(W_p q))"},
                      {"widths", "[batch, heads, queries]", "s, positive: width around p", 1,
                       "D / 2"}},
       .is_positional = false},
      {.kind = BiasKind::grid,
       .name = "grid",
       .syntax = "grid:HxW",
       .formula = "t[y_j - y_i][x_j - x_i]",
       .source = "Cordonnier et al. 2020; Liu et al. 2021, eq. 4",
       .parameters = {{"table", "[heads, 2 height - 1, 2 width - 1] or without heads",
                       "t, a number per pair of row and column distances", 2}},
       .numbers = {.count = 2, .least = 1, .factor = 2, .shift = -1}},
  };
}

// Biases that are equal for every pair.
std::vector<BiasRow> constant_rows() {
  return {
      {.kind = BiasKind::offset,
       .name = "offset",
       .syntax = "offset",
       .formula = "b, the same for every pair",
       .source = "Raffel et al. 2017, eq. 9-11; Ramapuram et al. 2024, eq. 3",
       .parameters = {{"offset", "[heads]", "one number added to every score"}},
       .is_positional = false},
      {.kind = BiasKind::sink,
       .name = "sink",
       .syntax = "sink",
       .formula = "one more score in the softmax, without a value",
       .source = "Xiao et al. 2024",
       .parameters = {{"sink", "[heads]", "the score of a key without a value"}},
       .is_positional = false},
  };
}

const BiasRow& bias_row(std::string_view name) { return find_row(bias_table(), "bias", name); }

// Returns -1 for a text that is not a valid number of a bias.
int64_t digits_value(std::string_view digits) {
  int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  const bool fits = number >= 0 && number <= largest_bias_number;
  return error == std::errc() && stop == end && fits ? number : -1;
}

bool has_all_numbers(const BiasChoice& choice) {
  const BiasNumbers& numbers = choice.row->numbers;
  return choice.numbers.size() == numbers.count ||
         (numbers.takes_distance && choice.numbers.size() == numbers.count + 1);
}

BiasChoice parse_bias(std::string_view part) {
  const size_t colon = part.find(':');
  BiasChoice choice{&bias_row(part.substr(0, colon))};
  if (colon == std::string_view::npos) return choice;
  for (size_t begin = colon + 1; begin <= part.size();) {
    const char between = choice.row->numbers.takes_distance ? ',' : 'x';
    const size_t end = std::min(part.find(between, begin), part.size());
    choice.numbers.push_back(digits_value(part.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (!has_all_numbers(choice) || std::count(choice.numbers.begin(), choice.numbers.end(), -1) > 0)
    fail("bias {}: write {}{}", in_quotes(part), choice.row->syntax,
         choice.row->numbers.count == 0 ? "" : fmt::format(", up to {}", largest_bias_number));
  return choice;
}

}  // namespace

const std::vector<BiasRow>& bias_table() {
  static const std::vector<BiasRow> table = [] {
    std::vector<BiasRow> all;
    for (const auto& part : {given_rows(), distance_rows(), position_rows(), disentangled_rows(),
                             table_rows(), constant_rows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

std::string parameter_name(const BiasRow& row, const BiasParameter& parameter) {
  return parameter.name == row.name ? std::string(row.name)
                                    : fmt::format("{}_{}", row.name, parameter.name);
}

std::vector<BiasChoice> parse_biases(std::string_view text) {
  std::string plain(text);
  std::erase(plain, ' ');
  std::vector<BiasChoice> biases;
  if (plain.empty()) return biases;
  for (size_t begin = 0; begin <= plain.size();) {
    const size_t end = std::min(plain.find('+', begin), plain.size());
    const BiasChoice choice = parse_bias(std::string_view(plain).substr(begin, end - begin));
    if (has_bias(biases, choice.row->kind))
      fail("bias {} is named twice in {}; name it once, with the sum of its tensors",
           choice.row->name, in_quotes(text));
    biases.push_back(choice);
    begin = end + 1;
  }
  return biases;
}

bool has_bias(const std::vector<BiasChoice>& biases, BiasKind kind) {
  return std::any_of(biases.begin(), biases.end(),
                     [&](const BiasChoice& bias) { return bias.row->kind == kind; });
}

std::vector<int64_t> table_axes(const BiasChoice& choice) {
  const BiasNumbers& numbers = choice.row->numbers;
  std::vector<int64_t> axes;
  axes.reserve(numbers.count);
  for (size_t i = 0; i < std::min(numbers.count, choice.numbers.size()); ++i)
    axes.push_back(numbers.factor * choice.numbers[i] + numbers.shift);
  return axes;
}

}  // namespace attend
