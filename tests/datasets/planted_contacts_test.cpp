#include "attend/datasets/planted_contacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "attend/base/files.h"
#include "attend/text/fasta.h"
#include "attend/text/text_lines.h"
#include "tests/support/files.h"

namespace attend {
namespace planted_contacts_test {

using testing::HasSubstr;

std::vector<std::string> proteins_of(const std::string& path) {
  return parse_lines(parse_fasta(read_file(path), path), path);
}

// Share of proteins with the most frequent second residue, given the residue at the first place.
double told_by_first(const std::vector<std::string>& proteins, const Contact& places) {
  std::map<char, std::map<char, int>> counts;
  for (const std::string& protein : proteins)
    ++counts[protein[static_cast<size_t>(places.first - 1)]]
            [protein[static_cast<size_t>(places.second - 1)]];
  int told = 0;
  for (const auto& [first, seconds] : counts)
    told += std::max_element(seconds.begin(), seconds.end(), [](const auto& a, const auto& b) {
              return a.second < b.second;
            })->second;
  return static_cast<double>(told) / static_cast<double>(proteins.size());
}

TEST(PlantedContacts, ChangeTogether) {
  const test::TemporaryFolder folder;
  const PlantedContacts planted{.count = 3000, .valid = 70, .length = 70, .contacts = 30};
  const std::vector<Contact> contacts = write_planted_contacts(folder / "out", planted);
  const std::vector<std::string> proteins = proteins_of(folder / "out/train.fasta");
  ASSERT_EQ(proteins.size(), 3000U);
  EXPECT_EQ(proteins_of(folder / "out/valid.fasta").size(), 70U);
  for (const std::string& protein : proteins) ASSERT_EQ(protein.size(), 70U);
  ASSERT_EQ(contacts.size(), 30U);
  std::set<int64_t> places;
  std::string lines;
  for (const Contact& contact : contacts) {
    EXPECT_GE(contact.second - contact.first, 6);
    EXPECT_TRUE(places.insert(contact.first).second && places.insert(contact.second).second);
    EXPECT_GT(told_by_first(proteins, contact), 0.85);
    lines += fmt::format("{}\t{}\n", contact.first, contact.second);
  }
  EXPECT_EQ(test::contents(folder / "out/contacts.tsv"), lines);
  // Half of the residues are one of four that their place prefers, the others are uniform.
  for (int64_t place = 1; place < 70; ++place) {
    if (places.contains(place) || places.contains(place + 1)) continue;
    EXPECT_LT(told_by_first(proteins, {place, place + 1}), 0.35);
  }
}

TEST(PlantedContacts, FollowTheSeed) {
  const test::TemporaryFolder folder;
  const auto drawn = [&](uint64_t seed) {
    const std::string own = folder / std::to_string(seed);
    write_planted_contacts(own, {.count = 3, .valid = 1, .seed = seed});
    return test::contents(own + "/train.fasta") + test::contents(own + "/contacts.tsv");
  };
  const std::string first = drawn(1);
  EXPECT_NE(drawn(2), first);
  EXPECT_EQ(drawn(1), first);
}

TEST(PlantedContacts, FindRoom) {
  const test::TemporaryFolder folder;
  for (uint64_t seed = 1; seed <= 30; ++seed)
    EXPECT_EQ(
        write_planted_contacts(folder / std::to_string(seed),
                               {.count = 1, .valid = 1, .length = 20, .contacts = 5, .seed = seed})
            .size(),
        5U);
  for (const PlantedContacts& planted :
       {PlantedContacts{.count = 0}, PlantedContacts{.valid = 0}, PlantedContacts{.contacts = 0},
        PlantedContacts{.length = 20, .contacts = 6}, PlantedContacts{.length = -4},
        PlantedContacts{.count = 1'000'000'000}})
    EXPECT_THAT(test::error_of([&] { write_planted_contacts(folder / "none", planted); }),
                HasSubstr("[planted contacts]"));
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

}  // namespace planted_contacts_test
}  // namespace attend
