#include "attend/pictures/label_track.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attend/base/error.h"

namespace attend {
namespace label_track_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Every label attends to the third of each seven tokens.
Alignment of_residues(int64_t count) {
  Alignment alignment;
  alignment.weights = {count, count, std::vector<double>(static_cast<size_t>(count * count), 0.0)};
  for (int64_t i = 0; i < count; ++i) {
    alignment.source.emplace_back(1, static_cast<char>('A' + i % 26));
    alignment.target.emplace_back(i % 2 == 0 ? "h" : "_");
    for (int64_t j = 2; j < count; j += 7)
      alignment.weights.values[static_cast<size_t>(i * count + j)] = 1;
  }
  return alignment;
}

TEST(LabelTrack, HasLinesOfSixtyTokens) {
  EXPECT_EQ(label_track(of_residues(62)),
            "     1  ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH\n"
            "        h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_h_\n"
            "        ▁▁█▁▁▁▁▁▁█▁▁▁▁▁▁█▁▁▁▁▁▁█▁▁▁▁▁▁█▁▁▁▁▁▁█▁▁▁▁▁▁█▁▁▁▁▁▁█▁▁▁▁▁▁█▁\n"
            "\n"
            "    61  IJ\n"
            "        h_\n"
            "        ▁▁\n");
}

TEST(LabelTrack, RefusesWhatHasNoLabelOfOneCharacterForEachToken) {
  Alignment words = of_residues(3);
  words.source[1] = "Oslo";
  EXPECT_THAT([&] { label_track(words); },
              ThrowsMessage<Error>(HasSubstr("'Oslo' is not a single")));
  Alignment fewer = of_residues(3);
  fewer.target.pop_back();
  fewer.weights.rows = 2;
  fewer.weights.values.resize(6);
  EXPECT_THAT([&] { label_track(fewer); },
              ThrowsMessage<Error>(HasSubstr("2 labels for 3 tokens")));
}

}  // namespace label_track_test
}  // namespace attend
