#include "attend/files/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace attend {
namespace pickle_test {

using test::error_of;
using testing::HasSubstr;
using namespace std::string_literals;

std::string message(const std::string& bytes) {
  return error_of([&] { parse_pickle(bytes, "a.pkl"); });
}

// Bytes of pickle.dumps of Python 3.11, by protocol.
TEST(Pickle, ReadsPlainValues) {
  // {'a': [1, -2, 300, 1.5, True, None], 'b': ('x', (), 70000), 3: {}}
  const std::string protocol2 =
      "\x80\2}q\0(X\1\0\0\0aq\1]q\2(K\1J\xfe\xff\xff\xffM\x2c\1G?\xf8\0\0\0\0\0\0\x88NeX\1\0\0\0bq\3X\1\0\0\0xq\4)J\x70\x11\1\0\x87q\5K\3}q\6u."s;
  const std::string protocol4 =
      "\x80\4\x95\x37\0\0\0\0\0\0\0}\x94(\x8c\1a\x94]\x94(K\1J\xfe\xff\xff\xffM\x2c\1G?\xf8\0\0\0\0\0\0\x88Ne\x8c\1b\x94\x8c\1x\x94)J\x70\x11\1\0\x87\x94K\3}\x94u."s;
  const nlohmann::json expected = {{"a", {1, -2, 300, 1.5, true, nullptr}},
                                   {"b", {"x", nlohmann::json::array(), 70000}},
                                   {"3", nlohmann::json::object()}};
  EXPECT_EQ(parse_pickle(protocol2, "a.pkl"), expected);
  EXPECT_EQ(parse_pickle(protocol4, "a.pkl"), expected);
}

// An object keeps its attributes; a dictionary of a class its entries.
TEST(Pickle, ReadsObjectsAsTheirAttributes) {
  const std::string object =
      "\x80\4\x8c\1m\x94\x8c\1C\x94\x93\x94)\x81\x94}\x94(\x8c\4size\x94K\7u\x62."s;
  EXPECT_EQ(parse_pickle(object, "a.pkl"), nlohmann::json({{"size", 7}}));
  const std::string ordered =
      "\x80\4\x8c\x0b"
      "collections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94(\x8c\1a\x94K\2u."s;
  EXPECT_EQ(parse_pickle(ordered, "a.pkl"), nlohmann::json({{"a", 2}}));
  // The same list twice, through the memory.
  EXPECT_EQ(parse_pickle("\x80\4]\x94K\5\x61h\0\x86."s, "a.pkl"), nlohmann::json({{5}, {5}}));
}

TEST(Pickle, ExecutesNothing) {
  // A call of a function with an argument is an empty object.
  EXPECT_EQ(parse_pickle("cposix\nsystem\nX\4\0\0\0exit\x85R."s, "a.pkl"),
            nlohmann::json::object());
}

TEST(Pickle, RefusesWhatIsDamaged) {
  EXPECT_THAT(message(""), HasSubstr("a.pkl: is cut off after 0 bytes"));
  EXPECT_THAT(message("."), HasSubstr("lacks a value"));
  EXPECT_THAT(message("}(K\1u."), HasSubstr("a key before byte 5 has no value"));
  EXPECT_THAT(message("]}e."), HasSubstr("no mark before byte 3"));
  EXPECT_THAT(message("K\1K\2a."), HasSubstr("do not fit"));
  EXPECT_THAT(message("h\1."), HasSubstr("reads value 1 before it is there"));
  EXPECT_THAT(message("}(]K\1u."), HasSubstr("neither a text nor a whole number"));
  EXPECT_THAT(message("\x8a\x09" + std::string(9, '\1') + "."), HasSubstr("number of 9 bytes"));
  EXPECT_THAT(message("i"), HasSubstr("uses the instruction 0x69 at byte 0, which is not read"));
  // A list that holds itself.
  EXPECT_THAT(message("]\x94h\0\x61."s),
              HasSubstr("nested over 64 levels deep, or refers to itself"));
  // Each list holds the one before twice; an object gets its own entries again and again.
  std::string doubled = "]\x94";
  for (char i = 0; i < 40; ++i) doubled += "h"s + i + "h"s + i + "\x86\x94";
  EXPECT_THAT(message(doubled + "."), HasSubstr("holds over 1000000 values"));
  std::string fed = "}\x94(K\1K\2u"s;
  for (int i = 0; i < 40; ++i) fed += "h\0\x62"s;
  EXPECT_THAT(message(fed + "."), HasSubstr("holds over 1000000 values"));
}

}  // namespace pickle_test
}  // namespace attend
