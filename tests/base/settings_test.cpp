#include "attend/base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/files.h"

namespace attend {
namespace settings_test {

using test::error_of;
using testing::HasSubstr;

struct Options {
  int64_t hidden = 256;
  double rate = 0.001;
  bool attention = true;
  std::string score = "additive";
  std::string note = "none";

  Settings settings() {
    return {{.key = "seed_note", .value = &note, .help = "a note"},
            {.key = "model.hidden",
             .value = &hidden,
             .help = "width of the states",
             .minimum = 1,
             .maximum = 4096},
            {.key = "train.rate", .value = &rate, .help = "step", .minimum = 0, .maximum = 1},
            {.key = "model.attention", .value = &attention, .help = "off: one context vector"},
            {.key = "model.score",
             .value = &score,
             .help = "how a query meets a key",
             .choices = {"dot", "scaled_dot", "additive"}}};
  }
};

std::string toml_error(const std::string& document) {
  Options options;
  return error_of([&] { parse_toml(options.settings(), document, "c.toml"); });
}

TEST(Toml, SetsTheVariables) {
  Options options;
  parse_toml(options.settings(),
             "seed_note = 'x'\n[model]\nhidden = 12\nattention = false\nscore = \"dot\"\n"
             "[train]\nrate = 0.5\n",
             "c.toml");
  EXPECT_EQ(options.hidden, 12);
  EXPECT_EQ(options.rate, 0.5);
  EXPECT_FALSE(options.attention);
  EXPECT_EQ(options.score, "dot");
  EXPECT_EQ(options.note, "x");
}

TEST(Toml, LeavesWhatTheFileDoesNotName) {
  Options options;
  parse_toml(options.settings(), "", "c.toml");
  parse_toml(options.settings(), "[model]\n", "c.toml");
  EXPECT_EQ(options.hidden, 256);
}

TEST(Toml, TakesAnIntegerWhereANumberIsWanted) {
  Options options;
  parse_toml(options.settings(), "train.rate = 1", "c.toml");
  EXPECT_EQ(options.rate, 1.0);
}

TEST(Toml, SuggestsTheNearestKey) {
  EXPECT_EQ(toml_error("\n[model]\nhiden = 12\n"),
            "c.toml:3: unknown key 'model.hiden'; did you mean model.hidden?");
  EXPECT_EQ(toml_error("hidden = 12\n"),
            "c.toml:1: unknown key 'hidden'; did you mean model.hidden?");
  EXPECT_EQ(toml_error("zebra = 12\n"), "c.toml:1: unknown key 'zebra'");
  EXPECT_EQ(toml_error("\"model.hidden\" = 3"),
            "c.toml:1: unknown key '\"model.hidden\"'; did you mean model.hidden?");
  EXPECT_EQ(toml_error("note = 3"), "c.toml:1: unknown key 'note'; did you mean seed_note?");
  EXPECT_EQ(toml_error("model.rate = 3"),
            "c.toml:1: unknown key 'model.rate'; did you mean train.rate?");
}

TEST(Toml, SuggestsAllKeysThatEndAlike) {
  int64_t layers = 1;
  const Settings settings = {{"model.encoder_layers", &layers, "layers"},
                             {"model.decoder_layers", &layers, "layers"},
                             {"model.layer", &layers, "layer"}};
  EXPECT_EQ(error_of([&] { parse_toml(settings, "model.layers = 2", "c.toml"); }),
            "c.toml:1: unknown key 'model.layers'; did you mean model.encoder_layers or "
            "model.decoder_layers?");
}

TEST(Toml, NamesTheWantedType) {
  EXPECT_EQ(toml_error("[model]\nhidden = 'big'"),
            "c.toml:2: model.hidden must be an integer, not the string 'big'");
  EXPECT_EQ(toml_error("model.hidden = 1.5"),
            "c.toml:1: model.hidden must be an integer, not the number 1.5");
  EXPECT_EQ(toml_error("train.rate = true"), "c.toml:1: train.rate must be a number, not true");
  EXPECT_EQ(toml_error("model.attention = 1"),
            "c.toml:1: model.attention must be true or false, not the integer 1");
  EXPECT_EQ(toml_error("model.score = []"), "c.toml:1: model.score must be a string, not an array");
  EXPECT_EQ(toml_error("model.score = 2015-09-17"),
            "c.toml:1: model.score must be a string, not a date or time");
  EXPECT_EQ(toml_error("[model.hidden]\nx = 1"),
            "c.toml:1: model.hidden must be an integer, not a table");
  EXPECT_EQ(toml_error("model = 3"),
            "c.toml:1: 'model' is a table of settings, such as model.hidden");
}

TEST(Toml, NamesTheRange) {
  EXPECT_EQ(toml_error("model.hidden = 0"),
            "c.toml:1: model.hidden is 0; it must be from 1 to 4096");
  EXPECT_EQ(toml_error("train.rate = -0.5"),
            "c.toml:1: train.rate is -0.5; it must be from 0 to 1");
  EXPECT_EQ(toml_error("train.rate = nan"), "c.toml:1: train.rate is nan; it must be a number");
  EXPECT_EQ(toml_error("train.rate = inf"), "c.toml:1: train.rate is inf; it must be from 0 to 1");
  int64_t steps = 5;
  const Settings open{{.key = "steps", .value = &steps, .help = "", .minimum = 1}};
  EXPECT_EQ(error_of([&] { parse_toml(open, "steps = 0", "c.toml"); }),
            "c.toml:1: steps is 0; it must be at least 1");
}

TEST(Toml, ListsTheChoices) {
  EXPECT_EQ(toml_error("model.score = 'aditive'"),
            "c.toml:1: model.score is 'aditive'; it must be one of dot, scaled_dot, additive; "
            "did you mean additive?");
}

TEST(Toml, PlacesSyntaxErrors) {
  EXPECT_THAT(toml_error("[model]\nhidden = = 2\n"), HasSubstr("c.toml:2:10: not valid TOML: "));
  EXPECT_THAT(toml_error("a = 1\na = 2\n"), HasSubstr("c.toml:2:"));
  EXPECT_THAT(toml_error("a = \"\xff\""), HasSubstr("c.toml:1:"));
}

TEST(Toml, KeepsSyntaxErrorsOnOneLine) {
  const std::string message = toml_error("a = i\nb = 1\n");
  EXPECT_THAT(message, HasSubstr("not valid TOML"));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Toml, ChangesNothingWhenItFails) {
  Options options;
  const std::string document = "[model]\nattention = false\nhidden = 3\nscore = 'none'\n";
  EXPECT_NE(error_of([&] { parse_toml(options.settings(), document, "c.toml"); }), "");
  EXPECT_EQ(options.hidden, 256);
  EXPECT_TRUE(options.attention);
}

TEST(Toml, BoundsDepthAndSize) {
  std::string dotted = "a";
  for (int i = 0; i < 1900; ++i) dotted += ".a";
  EXPECT_THAT(toml_error(dotted + " = 1"), HasSubstr("unknown key"));
  for (int i = 0; i < 200000; ++i) dotted += ".a";
  EXPECT_THAT(toml_error(dotted + " = 1"), HasSubstr("dots"));
  EXPECT_THAT(toml_error("a = " + std::string(100000, '[')), HasSubstr("not valid TOML"));
  const test::TemporaryFolder folder;
  Options options;
  const std::string large = folder.write("c.toml", std::string(2 << 20, ' '));
  EXPECT_THAT(error_of([&] { TomlFile{large}; }), HasSubstr("at most"));
}

TEST(Toml, ReadsAFileAndNamesIt) {
  const test::TemporaryFolder folder;
  Options options;
  TomlFile(folder.write("good.toml", "model.hidden = 7")).read(options.settings());
  EXPECT_EQ(options.hidden, 7);
  const std::string bad = folder.write("bad.toml", "model.hidden = 0");
  EXPECT_THAT(error_of([&] { TomlFile(bad).read(options.settings()); }), HasSubstr(bad + ":1: "));
  EXPECT_THAT(error_of([&] { TomlFile(folder / "none"); }), HasSubstr("no such file"));
}

TEST(Toml, ReadsOneKeyWhateverElseIsThere) {
  const test::TemporaryFolder folder;
  Options options;
  const Settings settings = options.settings();
  const Setting& hidden = settings[1];
  TomlFile(folder.write("a.toml", "x = 1\n[model]\nstrange = 2\nhidden = 9\n")).read_key(hidden);
  EXPECT_EQ(options.hidden, 9);
  TomlFile(folder.write("b.toml", "[other]\nhidden = 8\n")).read_key(hidden);
  EXPECT_EQ(options.hidden, 9);
  const std::string bad = folder.write("c.toml", "[model]\n\nhidden = \"wide\"\n");
  EXPECT_THAT(error_of([&] { TomlFile(bad).read_key(hidden); }),
              HasSubstr(bad + ":3: model.hidden must be an integer"));
}

TEST(Assign, SetsEachType) {
  Options options;
  const Settings settings = options.settings();
  assign(settings, "model.hidden=31");
  assign(settings, " train.rate = 1e-4 ");
  assign(settings, "model.attention=false");
  assign(settings, "seed_note=a = 'b'");
  EXPECT_EQ(options.hidden, 31);
  EXPECT_EQ(options.rate, 1e-4);
  EXPECT_FALSE(options.attention);
  EXPECT_EQ(options.note, "a = 'b'");
  assign(settings, "seed_note=");
  EXPECT_EQ(options.note, "");
}

TEST(Assign, NamesTheAssignment) {
  Options options;
  const auto message = [&](const std::string& text) {
    return error_of([&] { assign(options.settings(), text); });
  };
  EXPECT_EQ(message("model.hidden"), "'model.hidden': a setting is given as key=value");
  EXPECT_EQ(message("model.hidden=x"),
            "'model.hidden=x': model.hidden must be an integer, not 'x'");
  EXPECT_EQ(message("model.hidden=1.5"),
            "'model.hidden=1.5': model.hidden must be an integer, not '1.5'");
  EXPECT_EQ(message("model.hidden="), "'model.hidden=': model.hidden must be an integer, not ''");
  EXPECT_EQ(message("model.hidden=99999999999999999999"),
            "'model.hidden=99999999999999999999': model.hidden must be an integer, not "
            "'99999999999999999999'");
  EXPECT_EQ(message("model.attention=yes"),
            "'model.attention=yes': model.attention must be true or false, not 'yes'");
  EXPECT_EQ(message("model.hidden=5000"),
            "'model.hidden=5000': model.hidden is 5000; it must be from 1 to 4096");
  EXPECT_EQ(message("modle.hidden=5"),
            "'modle.hidden=5': unknown key 'modle.hidden'; did you mean model.hidden?");
  EXPECT_EQ(message("=5"), "'=5': unknown key ''");
  EXPECT_EQ(message("train.rate=nan"), "'train.rate=nan': train.rate is nan; it must be a number");
}

TEST(Environment, SetsAndNamesTheVariable) {
  Options options;
  setenv("ATTEND_MODEL_HIDDEN", "77", 1);
  read_environment(options.settings());
  EXPECT_EQ(options.hidden, 77);
  EXPECT_EQ(options.rate, 0.001);
  setenv("ATTEND_MODEL_HIDDEN", "many", 1);
  const std::string message = error_of([&] { read_environment(options.settings()); });
  unsetenv("ATTEND_MODEL_HIDDEN");
  EXPECT_EQ(message,
            "environment variable ATTEND_MODEL_HIDDEN: model.hidden must be an integer, not "
            "'many'");
}

TEST(Environment, NamesWhatSetsNothing) {
  const std::vector<std::string> keys = {"model.hidden", "train.rate", "note"};
  EXPECT_EQ(error_of([&] { check_environment(keys); }), "");
  for (const char* harmless : {"ATTEND_MODEL_HIDDEN", "ATTEND_SEED", "ATTEND_TRAINS"}) {
    setenv(harmless, "1", 1);
    EXPECT_EQ(error_of([&] { check_environment(keys); }), "") << harmless;
    unsetenv(harmless);
  }
  setenv("ATTEND_MODEL_HIDEN", "77", 1);
  EXPECT_EQ(error_of([&] { check_environment(keys); }),
            "environment variable 'ATTEND_MODEL_HIDEN' sets nothing; did you mean "
            "ATTEND_MODEL_HIDDEN?");
  unsetenv("ATTEND_MODEL_HIDEN");
}

TEST(CheckValues, RefusesWhatAFileMayNotSay) {
  Options options;
  EXPECT_EQ(error_of([&] { check_values(options.settings(), "here"); }), "");
  options.hidden = 5000;
  EXPECT_EQ(error_of([&] { check_values(options.settings(), "here"); }),
            "here: model.hidden is 5000; it must be from 1 to 4096");
  options.hidden = 7;
  options.score = "none such";
  EXPECT_THAT(error_of([&] { check_values(options.settings(), "here"); }),
              HasSubstr("here: model.score is 'none such'; it must be one of"));
}

// A file of settings can be moved together with the files that it names.
TEST(TomlFile, NamesFilesBesideIt) {
  const test::TemporaryFolder folder;
  std::string there = "before", absent = there, text = there;
  const Settings settings = {{.key = "there", .value = &there, .is_file = true},
                             {.key = "absent", .value = &absent, .is_file = true},
                             {.key = "text", .value = &text}};
  folder.write("codes", "");
  const std::string path =
      folder.write("a.toml", "there = \"codes\"\nabsent = \"none\"\ntext = \"codes\"\n");
  TomlFile(path).read(settings);
  EXPECT_EQ(there, folder / "codes");
  EXPECT_EQ(absent, "none");
  EXPECT_EQ(text, "codes");
  there = "";
  TomlFile(path).read_key(settings[0]);
  EXPECT_EQ(there, folder / "codes");
}

TEST(ToToml, GroupsKeysByTable) {
  Options options;
  EXPECT_EQ(to_toml(options.settings()),
            "seed_note = \"none\"\n\n[model]\nhidden = 256\nattention = true\n"
            "score = \"additive\"\n\n[train]\nrate = 0.001\n");
}

TEST(ToToml, CommentsWithHelpRangeAndChoices) {
  Options options;
  const std::string document = to_toml(options.settings(), true);
  EXPECT_THAT(document, HasSubstr("# width of the states (from 1 to 4096)\nhidden = 256\n"));
  EXPECT_THAT(document,
              HasSubstr("# how a query meets a key (one of dot, scaled_dot, additive)\n"));
  Options same;
  parse_toml(same.settings(), document, "c.toml");
}

// Any Unicode text, including control characters and line breaks.
rc::Gen<std::string> text() {
  const auto character = rc::gen::oneOf(rc::gen::inRange<char32_t>(0, 0x100),
                                        rc::gen::inRange<char32_t>(0x100, 0xD800),
                                        rc::gen::inRange<char32_t>(0xE000, 0x110000));
  return rc::gen::map(rc::gen::container<std::u32string>(character), [](const std::u32string& s) {
    std::string utf8;
    for (const char32_t c : s) {
      const auto tail = [&](int shift) { utf8 += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
      if (c < 0x80) {
        utf8 += static_cast<char>(c);
      } else if (c < 0x800) {
        utf8 += static_cast<char>(0xC0 | (c >> 6));
        tail(0);
      } else if (c < 0x10000) {
        utf8 += static_cast<char>(0xE0 | (c >> 12));
        tail(6), tail(0);
      } else {
        utf8 += static_cast<char>(0xF0 | (c >> 18));
        tail(12), tail(6), tail(0);
      }
    }
    return utf8;
  });
}

double double_of(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

struct Values {
  int64_t integer = 0;
  double number = 0;
  bool flag = false;
  std::string text;

  Settings settings() {
    return {{.key = "a.integer", .value = &integer, .help = "one\ntwo"},
            {.key = "b.c.number", .value = &number, .help = ""},
            {.key = "a.flag", .value = &flag, .help = "x"},
            {.key = "text", .value = &text, .help = "y"}};
  }
};

void expect_round_trip(Values values) {
  for (const bool with_help : {false, true}) {
    Values same;
    parse_toml(same.settings(), to_toml(values.settings(), with_help), "c.toml");
    RC_ASSERT(same.integer == values.integer);
    RC_ASSERT(same.number == values.number);
    RC_ASSERT(std::signbit(same.number) == std::signbit(values.number));
    RC_ASSERT(same.flag == values.flag);
    RC_ASSERT(same.text == values.text);
  }
}

TEST(ToToml, RestoresEverySettingExactly) {
  EXPECT_TRUE(rc::check("settings survive a round trip", [] {
    Values values;
    values.integer = *rc::gen::arbitrary<int64_t>();
    // Any bits: subnormal, huge and infinite numbers are as frequent as others.
    const double number =
        double_of(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()));
    values.number = std::isnan(number) ? 0 : number;
    values.flag = *rc::gen::arbitrary<bool>();
    values.text = *text();
    expect_round_trip(values);
  }));
}

TEST(ToToml, RestoresTheExtremes) {
  using Limits = std::numeric_limits<double>;
  for (const double number :
       {0.0, -0.0, 3.0, 1e20, 1e300, 0.1, 1.0 / 3, Limits::min(), Limits::max(),
        Limits::denorm_min(), -Limits::denorm_min(), Limits::infinity(), -Limits::infinity()}) {
    EXPECT_NO_THROW(expect_round_trip({.number = number, .text = ""})) << number;
  }
  for (const int64_t integer :
       {std::numeric_limits<int64_t>::min(), int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_NO_THROW(expect_round_trip({.integer = integer, .text = ""})) << integer;
  }
}

TEST(Nearest, FindsSlipsOfTheHand) {
  const std::vector<std::string> words{"dot", "scaled_dot", "additive", "cosine"};
  EXPECT_EQ(nearest("additve", words), "additive");
  EXPECT_EQ(nearest("adidtive", words), "additive") << "neighbours swapped";
  EXPECT_EQ(nearest("dto", words), "dot");
  EXPECT_EQ(nearest("scaleddot", words), "scaled_dot");
  EXPECT_EQ(nearest("cosine", words), "cosine");
}

TEST(Nearest, SuggestsNothingFarAway) {
  const std::vector<std::string> words{"dot", "additive"};
  EXPECT_EQ(nearest("location", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("x", words), "");
  EXPECT_EQ(nearest("dot", {}), "");
  EXPECT_EQ(nearest(std::string(100000, 'd'), words), "");
}

enum class Shape { round, square, none };
EnumNames names_of(Shape) { return {"round", "square", "none"}; }

struct Named {
  Shape shape = Shape::round;
  std::string word = "one", note;

  Settings settings() {
    return {{"a.shape", &shape, "shape of the figure"},
            {.key = "a.word", .value = &word, .choices = {"one", "two"}},
            {"a.note", &note}};
  }
};

TEST(Names, AreReadIntoAnEnumAndWrittenFromIt) {
  Named options;
  parse_toml(options.settings(), "[a]\nshape = 'square'\n", "c.toml");
  EXPECT_EQ(options.shape, Shape::square);
  EXPECT_THAT(
      to_toml(options.settings(), true),
      HasSubstr("# shape of the figure (one of round, square, none)\nshape = \"square\"\n"));
  assign(options.settings(), "a.shape=none");
  EXPECT_EQ(options.shape, Shape::none);
  EXPECT_EQ(name_of(options.shape), "none");
  const auto refused = [&](const char* document) {
    return error_of([&] { parse_toml(options.settings(), document, "c.toml"); });
  };
  EXPECT_EQ(refused("[a]\nshape = 'sqare'\n"),
            "c.toml:2: a.shape is 'sqare'; it must be one of round, square, none; did you mean "
            "square?");
  EXPECT_THAT(refused("[a]\nshape = 3\n"), HasSubstr("must be a string, not the integer 3"));
  EXPECT_THAT(error_of([] { value_of<Shape>("oval", "shape"); }),
              HasSubstr("no shape is called 'oval'; there are round, square, none"));
}

TEST(Names, MayBeLimitedToSome) {
  Shape shape = Shape::none;
  const Settings settings = {{.key = "shape", .value = &shape, .choices = {"round", "square"}}};
  EXPECT_THAT(error_of([&] { assign(settings, "shape=none"); }),
              HasSubstr("it must be one of round, square"));
  EXPECT_THAT(error_of([&] { check_values(settings, "here"); }), HasSubstr("shape is 'none'"));
}

TEST(Names, MayHaveAnyNumber) {
  std::string metric = "loss";
  const Settings settings = {
      {.key = "m", .value = &metric, .choices = {"loss", "hit@10", "hit@K"}}};
  for (const char* name : {"hit@5", "hit@10", "hit@123"}) {
    assign(settings, fmt::format("m={}", name));
    EXPECT_EQ(metric, name);
  }
  for (const char* name : {"hit@", "hit@0", "hit@-1", "hit@x", "hit@5x", "hit", "it@5"})
    EXPECT_THAT(error_of([&] { assign(settings, fmt::format("m={}", name)); }),
                HasSubstr("it must be one of loss, hit@10, hit@K"))
        << name;
}

TEST(Names, StandBetweenBlanks) {
  Named options;
  assign(options.settings(), "a.shape= square ");
  assign(options.settings(), "a.word=\ttwo");
  EXPECT_EQ(options.shape, Shape::square);
  EXPECT_EQ(options.word, "two");
  parse_toml(options.settings(), "[a]\nshape = ' none '\n", "c.toml");
  EXPECT_EQ(options.shape, Shape::none);
  assign(options.settings(), "a.note= x ");
  EXPECT_EQ(options.note, " x ");  // any text, unchanged
}

}  // namespace settings_test
}  // namespace attend
