#include "attend/datasets/planted_contacts.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/random.h"
#include "attend/datasets/new_files.h"

namespace attend {
namespace {

constexpr std::string_view residues = "ACDEFGHIKLMNPQRSTVWY";
constexpr int64_t apart = 6;
constexpr uint64_t preferred = 4;
constexpr size_t line_length = 60;

void check_family(const PlantedContacts& planted) {
  constexpr int64_t max_residues = 1'000'000'000;
  if (planted.contacts < 1 || planted.contacts > planted.length / 2 - (apart - 1))
    fail(
        "[planted contacts] {} contacts of proteins of {} residues; there are from 1 to half of "
        "the residues less {}",
        planted.contacts, planted.length, apart - 1);
  if (planted.count < 1 || planted.valid < 1)
    fail("[planted contacts] {} proteins and {} to validate with; take 1 or more of both",
         planted.count, planted.valid);
  if (planted.count > max_residues / planted.length ||
      planted.valid > max_residues / planted.length)
    fail("[planted contacts] {} and {} proteins of {} residues are over {} residues; ask for fewer",
         planted.count, planted.valid, planted.length, max_residues);
}

std::vector<int64_t> shuffled(int64_t count, std::mt19937_64& random) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  internal::shuffle(numbers, random);
  return numbers;
}

class ProteinFamily {
 public:
  explicit ProteinFamily(const PlantedContacts& planted)
      : random_(internal::generator(planted.seed, 0)),
        partner_of_(residues.size()),
        preferred_(static_cast<size_t>(planted.length)),
        first_of_(static_cast<size_t>(planted.length), -1) {
    const std::vector<int64_t> order = shuffled(std::ssize(residues), random_);
    for (size_t i = 0; i < order.size(); i += 2) {
      partner_of_[static_cast<size_t>(order[i])] = order[i + 1];
      partner_of_[static_cast<size_t>(order[i + 1])] = order[i];
    }
    for (std::vector<int64_t>& here : preferred_) {
      here = shuffled(std::ssize(residues), random_);
      here.resize(preferred);
    }
    draw_contacts(planted.contacts);
  }

  std::vector<Contact> contacts() const {
    std::vector<Contact> all;
    for (size_t place = 0; place < first_of_.size(); ++place)
      if (first_of_[place] >= 0)
        all.emplace_back(first_of_[place] + 1, static_cast<int64_t>(place) + 1);
    std::sort(all.begin(), all.end());
    return all;
  }

  // Returns a FASTA file.
  std::string proteins(int64_t count, std::string_view name) {
    std::string text;
    for (int64_t i = 1; i <= count; ++i) {
      text += fmt::format(">{}{}\n", name, i);
      const std::string protein = draw();
      for (size_t first = 0; first < protein.size(); first += line_length)
        text += protein.substr(first, line_length) + '\n';
    }
    return text;
  }

 private:
  void draw_contacts(int64_t count) {
    std::vector<int64_t> free = shuffled(std::ssize(first_of_), random_);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t one = free.back();
      free.pop_back();
      const auto far = std::find_if(free.begin(), free.end(),
                                    [&](int64_t place) { return std::abs(place - one) >= apart; });
      first_of_[static_cast<size_t>(std::max(one, *far))] = std::min(one, *far);
      free.erase(far);
    }
  }

  std::string draw() {
    std::vector<int64_t> drawn;
    for (size_t place = 0; place < first_of_.size(); ++place)
      drawn.push_back(
          first_of_[place] >= 0 && internal::draw_below(10, random_) > 0
              ? partner_of_[static_cast<size_t>(drawn[static_cast<size_t>(first_of_[place])])]
              : draw_independent(preferred_[place]));
    std::string protein;
    for (const int64_t residue : drawn) protein += residues[static_cast<size_t>(residue)];
    return protein;
  }

  int64_t draw_independent(const std::vector<int64_t>& here) {
    if (internal::draw_below(2, random_) == 0)
      return here[internal::draw_below(preferred, random_)];
    return static_cast<int64_t>(internal::draw_below(residues.size(), random_));
  }

  std::mt19937_64 random_;
  std::vector<int64_t> partner_of_;              // per residue
  std::vector<std::vector<int64_t>> preferred_;  // residues per position
  std::vector<int64_t> first_of_;  // per position: the contacting position before it, or -1
};

}  // namespace

std::vector<Contact> write_planted_contacts(const std::string& folder,
                                            const PlantedContacts& planted) {
  check_family(planted);
  ProteinFamily family(planted);
  NewFolder files(folder);
  files.add("train.fasta", family.proteins(planted.count, "train"));
  files.add("valid.fasta", family.proteins(planted.valid, "valid"));
  std::vector<Contact> contacts = family.contacts();
  std::string lines;
  for (const auto& [first, second] : contacts) lines += fmt::format("{}\t{}\n", first, second);
  files.add("contacts.tsv", lines);
  files.write();
  return contacts;
}

}  // namespace attend
