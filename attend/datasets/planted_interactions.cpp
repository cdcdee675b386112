#include "attend/datasets/planted_interactions.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "attend/base/error.h"
#include "attend/base/random.h"
#include "attend/datasets/new_files.h"

namespace attend {
namespace {

constexpr int64_t followers = 10;
constexpr double planted_share = 0.9;
constexpr int64_t max_lines = 100'000'000;

using Items = std::vector<int64_t>;

std::vector<Items> draw_followers(int64_t items, std::mt19937_64& random) {
  std::vector<Items> all;
  Items order(static_cast<size_t>(items));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t item = 0; item < items; ++item) {
    internal::shuffle(order, random);
    all.emplace_back(order.begin(), order.begin() + followers);
  }
  return all;
}

int64_t draw_next(const Items& following, int64_t items, std::mt19937_64& random) {
  constexpr uint64_t parts = 1000;
  const bool planted = internal::draw_below(parts, random) < uint64_t(parts * planted_share);
  if (planted) return following[internal::draw_below(following.size(), random)];
  return static_cast<int64_t>(internal::draw_below(static_cast<uint64_t>(items), random));
}

void check_sizes(const PlantedInteractions& planted) {
  if (planted.items < 2 * followers)
    fail("[planted interactions] {} items; {} or more are wanted", planted.items, 2 * followers);
  if (planted.users < 1 || planted.length < 3)
    fail("[planted interactions] {} users of {} items; 1 user of 3 items at least is wanted",
         planted.users, planted.length);
  if (planted.users > max_lines / planted.length)
    fail("[planted interactions] {} users of {} items are over {} lines; ask for fewer",
         planted.users, planted.length, max_lines);
}

}  // namespace

double PlantedInteractions::best_hit() const {
  return planted_share + (1 - planted_share) * followers / static_cast<double>(items);
}

PlantedSummary write_planted(const std::string& path, const PlantedInteractions& planted) {
  check_sizes(planted);
  std::mt19937_64 random = internal::generator(planted.seed, 0);
  const std::vector<Items> following = draw_followers(planted.items, random);
  const auto items = static_cast<uint64_t>(planted.items);
  Items last(static_cast<size_t>(planted.users));
  for (int64_t& item : last) item = static_cast<int64_t>(internal::draw_below(items, random));
  std::string text;
  int64_t hits = 0;
  for (int64_t time = 0; time < planted.length; ++time) {
    for (size_t user = 0; user < last.size(); ++user) {
      if (time > 0) {
        const Items& probable = following[static_cast<size_t>(last[user])];
        last[user] = draw_next(probable, planted.items, random);
        const bool hit = std::find(probable.begin(), probable.end(), last[user]) != probable.end();
        hits += hit && time == planted.length - 1 ? 1 : 0;
      }
      text += fmt::format("u{}\ti{}\t{}\n", user, last[user], time);
    }
  }
  write_new_files({{path, text}});
  return {planted.users * planted.length,
          static_cast<double>(hits) / static_cast<double>(planted.users)};
}

}  // namespace attend
