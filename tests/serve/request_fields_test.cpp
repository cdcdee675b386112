#include "attend/serve/request_fields.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <optional>

namespace attend::request_fields_test {

using testing::HasSubstr;

enum class Colour { red, green };
EnumNames names_of(Colour) { return {"red", "green"}; }

enum class Side { right, capitalised_right, left };
EnumNames names_of(Side) { return {"right", "Right", "left"}; }

struct Values {
  int64_t whole = 7;
  double number = 0.5;
  bool flag = false;
  std::string text;
  std::vector<std::string> texts;
  Colour colour = Colour::red;

  std::set<std::string> read(const std::string& body) {
    return read_request(body, {{"whole", &whole, 1, 10},
                               {"number", &number, 0, 1},
                               {"flag", &flag},
                               {"text", &text},
                               {"texts", &texts, 1, 3, true},
                               {"colour", &colour}});
  }
};

struct Refusal {
  int status = 0;
  std::string message;
  nlohmann::json param, code;
};

Refusal refusal(const std::string& body) {
  try {
    Values().read(body);
  } catch (const RequestError& error) {
    const HttpResponse response = openai_error(error);
    const auto told = nlohmann::json::parse(response.body).at("error");
    return {response.status, told.at("message"), told.at("param"), told.at("code")};
  }
  return {};
}

TEST(RequestFields, AnErrorIsAsOpenAIsClientsReadIt) {
  const auto error = [](const RequestError& what) {
    return nlohmann::json::parse(openai_error(what).body).at("error");
  };
  EXPECT_EQ(error({422, "the beam is 0", "beam", "out_of_range"}),
            (nlohmann::json{{"message", "the beam is 0"},
                            {"type", "invalid_request_error"},
                            {"param", "beam"},
                            {"code", "out_of_range"}}));
  const auto bare = error({503, "busy \xff"});
  EXPECT_EQ(bare.at("type"), "server_error");
  EXPECT_TRUE(bare.at("param").is_null() && bare.at("code").is_null());
}

TEST(RequestFields, AnErrorHasItsMessageAsDetailForOtherClients) {
  const RequestError error(422, "the beam is 0", "beam", "out_of_range");
  auto told = nlohmann::json::parse(detailed_error(error).body);
  EXPECT_EQ(told.at("detail"), "the beam is 0");
  told.erase("detail");
  EXPECT_EQ(told, nlohmann::json::parse(openai_error(error).body));
}

TEST(RequestFields, OneOfSeveralNamesIsTaken) {
  check_synonyms({}, {"top_n", "top_k"});
  check_synonyms({"top_k", "query"}, {"top_n", "top_k"});
  try {
    check_synonyms({"top_k", "top_n"}, {"top_n", "top_k"});
    FAIL();
  } catch (const RequestError& error) {
    EXPECT_STREQ(error.what(), "top_n and top_k mean the same; send one of them");
    EXPECT_EQ(error.param(), "top_k");
  }
}

TEST(RequestFields, AreRead) {
  Values values;
  const auto present = values.read(
      R"({"texts": ["a", "\u00e9"], "whole": 10, "number": 1, "flag": true, "text": "x",
          "colour": "green"})");
  EXPECT_EQ(present.size(), 6);
  EXPECT_EQ(values.texts, (std::vector<std::string>{"a", "\u00e9"}));
  EXPECT_EQ(values.whole, 10);
  EXPECT_EQ(values.number, 1);
  EXPECT_TRUE(values.flag);
  EXPECT_EQ(values.text, "x");
  EXPECT_EQ(values.colour, Colour::green);
  EXPECT_EQ(Values().read(R"({"texts": ["a"]})"), std::set<std::string>{"texts"});
}

// Integers as in JSON Schema, which the OpenAPI document uses.
TEST(RequestFields, ANumberWithoutAFractionIsWhole) {
  Values values;
  values.read(R"({"texts": ["a"], "whole": 6.0})");
  EXPECT_EQ(values.whole, 6);
  int64_t seed = 0;
  const std::vector<RequestField> fields = {{"seed", &seed, -max_seed, max_seed}};
  for (const char* number : {"9223372036854775807", "-9223372036854775807", "9007199254740993"}) {
    read_request(fmt::format(R"({{"seed": {}}})", number), fields);
    EXPECT_EQ(std::to_string(seed), number);
  }
  EXPECT_THROW(read_request(R"({"seed": 9223372036854775808})", fields), RequestError);
}

TEST(RequestFields, ASchemaHasDefaultsThatMeanTheSameAsNoField) {
  int64_t count = 3, seed = 1;
  double share = 0.5;
  bool flag = true;
  Colour colour = Colour::green;
  const auto schema = request_schema({{"count", &count, 1, 9},
                                      {"seed", &seed, 0, max_seed, false, false, false},
                                      {"share", &share, 0, 1, false, true, false},
                                      {"flag", &flag},
                                      {"colour", &colour}})["properties"];
  EXPECT_EQ(schema["count"], nlohmann::json::parse(R"({"type": "integer", "format": "int64",
      "minimum": 1, "maximum": 9, "default": 3})"));
  EXPECT_EQ(schema["seed"].dump(), R"({"format":"int64","maximum":9223372036854775807,)"
                                   R"("minimum":0,"type":"integer"})");
  EXPECT_FALSE(schema["share"]["anyOf"][0].contains("default"));
  EXPECT_EQ(schema["flag"]["default"], true);
  EXPECT_EQ(schema["colour"]["default"], "green");
}

TEST(RequestFields, AnObjectWithoutFieldsMustBeEmpty) {
  const std::vector<RequestField> fields = {
      {"bias", std::vector<RequestField>{}, 0, 0, false, true}};
  EXPECT_EQ(read_request(R"({"bias": {}})", fields).size(), 1U);
  EXPECT_EQ(read_request(R"({"bias": null})", fields).size(), 0U);
  EXPECT_THROW(read_request(R"({"bias": {"5": 1}})", fields), RequestError);
}

TEST(RequestFields, WhatIsNoJsonIs400) {
  for (const char* body : {"", "{", "{\"texts\": [\"a\"]} x", "{\"texts\": [\"\xff\"]}", "{'a': 1}",
                           "{\"whole\": 1e999}", "\xef\xbb", "{\"number\": NaN}"})
    EXPECT_EQ(refusal(body).status, 400) << body;
}

TEST(RequestFields, EachProblemNamesItsField) {
  struct Case {
    std::string body, param, message;
  };
  for (const Case& one : std::vector<Case>{
           {R"("texts")", "", "one JSON object"},
           {"[]", "", "one JSON object"},
           {"{}", "texts", "missing"},
           {R"({"texts": []})", "texts", "from 1 to 3"},
           {R"({"texts": ["a", "b", "c", "d"]})", "texts", "4 strings"},
           {R"({"texts": ["a", 1]})", "texts", "array of strings"},
           {R"({"texts": "a"})", "texts", "array of strings"},
           {R"({"texts": ["a"], "whole": 0})", "whole", "from 1 to 10"},
           {R"({"texts": ["a"], "whole": -1})", "whole", "is -1"},
           {R"({"texts": ["a"], "whole": 18446744073709551615})", "whole", "from 1 to 10"},
           {R"({"texts": ["a"], "whole": 1e300})", "whole", "from 1 to 10"},
           {R"({"texts": ["a"], "whole": 11.0})", "whole", "from 1 to 10"},
           {R"({"texts": ["a"], "whole": 2.5})", "whole", "whole number"},
           {R"({"texts": ["a"], "number": 1.01})", "number", "from 0 to 1"},
           {R"({"texts": ["a"], "number": "1"})", "number", "a number"},
           {R"({"texts": ["a"], "flag": 1})", "flag", "true or false"},
           {R"({"texts": ["a"], "text": null})", "text", "is null"},
           {R"({"texts": ["a"], "colour": "blue"})", "colour", "red, green"},
           {R"({"texts": ["a"], "colour": ["red"]})", "colour", "is array; it must be one of red"},
           {R"({"texts": ["a"], "texts": ["b"]})", "texts", "twice"},
           {R"({"texts": ["a"], "wohle": 1})", "wohle", "did you mean whole?"},
           {R"({"texts": ["a"], "\u0000\n": 1})", std::string("\0\n", 2), "there are whole"}}) {
    const Refusal found = refusal(one.body);
    EXPECT_EQ(found.status, 422) << one.body;
    EXPECT_THAT(found.message, HasSubstr(one.message)) << one.body;
    EXPECT_EQ(found.param.is_null() ? "" : found.param.get<std::string>(), one.param) << one.body;
  }
}

TEST(RequestFields, ALongNameIsToldByItsBeginning) {
  // 63 bytes and a character of two bytes, which is not cut.
  const std::string begin(63, 'x');
  const auto body = [](const std::string& name) { return "{\"" + name + "\": 1}"; };
  EXPECT_EQ(refusal(body(begin + "xyz")).param, begin + "x");
  EXPECT_EQ(refusal(body(begin + "\u00e9")).param, begin);
  EXPECT_EQ(refusal(body("\u00e9")).param, "\u00e9");
}

// The form that was read, with the texts and the ids.
std::string inputs_of(const std::string& json) {
  RequestInputs inputs{{InputForm::text, InputForm::texts, InputForm::text_rows, InputForm::ids,
                        InputForm::id_rows, InputForm::text_objects, InputForm::question}};
  try {
    read_request("{\"input\": " + json + "}", {{"input", &inputs, 1, 2, true}});
  } catch (const RequestError& error) {
    return error.what();
  }
  return nlohmann::json({static_cast<int>(inputs.form), inputs.texts, inputs.ids}).dump();
}

TEST(RequestFields, InputsHaveSeveralForms) {
  EXPECT_EQ(inputs_of(R"("a")"), R"([0,["a"],[]])");
  EXPECT_EQ(inputs_of(R"(["a","b"])"), R"([1,["a","b"],[]])");
  EXPECT_EQ(inputs_of(R"([["a"],["b"]])"), R"([2,["a","b"],[]])");
  EXPECT_EQ(inputs_of("[5,2147483647]"), "[3,[],[[5,2147483647]]]");
  EXPECT_EQ(inputs_of("[[5],[6,7]]"), "[4,[],[[5],[6,7]]]");
  EXPECT_EQ(inputs_of(R"([{"text":"a"},{"text":"b"}])"), R"([5,["a","b"],[]])");
  EXPECT_EQ(inputs_of(R"({"question":"a\tb","context":"c"})"), R"([6,["a b\tc"],[]])");
  EXPECT_THAT(inputs_of("[]"), HasSubstr("0 inputs; it must be from 1 to 2"));
  EXPECT_THAT(inputs_of("[[1],[2],[3]]"), HasSubstr("3 inputs"));
  for (const char* wrong :
       {"[-1]", "[2147483648]", "[18446744073709551615]", "[1.5]", "[1,\"a\"]", R"([["a","b"]])",
        R"([{"text":1}])", R"([{"text":"a","id":1}])", R"({"question":"a"})",
        R"({"question":"a","context":1})", "{}", "null", "[[[1]]]", "[true]"})
    EXPECT_THAT(inputs_of(wrong), HasSubstr("must be a string or an array of strings or")) << wrong;
}

// Generated clients cannot have both.
TEST(RequestFields, ASchemaHasOneSpellingPerName) {
  Side side = Side::right;
  const RequestField field{.name = "side", .value = &side};
  for (const char* name : {"Right", "left"}) {
    read_request(fmt::format(R"({{"side": "{}"}})", name), {field});
    EXPECT_EQ(name_of(side), name);
  }
  EXPECT_EQ(request_schema({field})["properties"]["side"]["enum"].dump(), R"(["right","left"])");
}

TEST(RequestFields, AnArrayCanHaveNames) {
  std::vector<std::string> types;
  const RequestField field{
      .name = "types", .value = &types, .minimum = 1, .maximum = 2, .names = {"float", "int8"}};
  read_request(R"({"types": ["int8", "float"]})", {field});
  EXPECT_EQ(types, (std::vector<std::string>{"int8", "float"}));
  for (const auto& [body, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"types": ["int4"]})", "types is 'int4'; it must be one of float, int8"},
           {R"({"types": "int8"})", "types is string; it must be an array of float, int8"},
           {R"({"types": []})", "from 1 to 2"}}) {
    try {
      read_request(body, {field});
      ADD_FAILURE() << body;
    } catch (const RequestError& error) {
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  }
  EXPECT_EQ(request_schema({field})["properties"]["types"]["items"].dump(),
            R"({"enum":["float","int8"],"type":"string"})");
}

TEST(RequestFields, NullAndObjects) {
  bool has_usage = false;
  std::string user = "nobody";
  const auto read = [&](const std::string& body) {
    try {
      return read_request(body, {{"options", std::vector<RequestField>{{"usage", &has_usage}}},
                                 {"user", &user, 0, 0, false, true}})
          .size();
    } catch (const RequestError& error) {
      return std::string(error.what()).size() + 1000;
    }
  };
  EXPECT_EQ(read(R"({"options": {}, "user": null})"), 1);
  EXPECT_EQ(read(R"({"options": {"usage": true}, "user": null})"), 2) << "options.usage";
  EXPECT_TRUE(has_usage);
  EXPECT_EQ(user, "nobody");
  for (const char* wrong : {R"({"options": {"usage": 1}})", R"({"options": {"more": true}})",
                            R"({"options": null})", R"({"options": []})"})
    EXPECT_GT(read(wrong), 1000) << wrong;
}

TEST(RequestFields, DepthAndValuesAreBounded) {
  const auto nested = [](int depth) {
    return "{\"texts\": " + std::string(static_cast<size_t>(depth - 1), '[') +
           std::string(static_cast<size_t>(depth - 1), ']') + "}";
  };
  EXPECT_THAT(refusal(nested(json_depth)).message, HasSubstr("array of strings"));
  EXPECT_THAT(refusal(nested(json_depth + 1)).message, HasSubstr("nested 8 deep"));
  EXPECT_THAT(refusal(std::string(1 << 20, '[')).message, HasSubstr("nested 8 deep"));
  std::string many = "{\"texts\": [0";
  for (size_t i = 0; i < json_values; ++i) many += ",0";
  EXPECT_THAT(refusal(many + "]}").message, HasSubstr("1000000 values"));
}

}  // namespace attend::request_fields_test
