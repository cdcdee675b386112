#include "attend/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "tests/support/files.h"

namespace attend {
namespace safetensors_test {

using test::error_of;
using testing::HasSubstr;

std::string with_length(uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + rest;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\1'));
}

// The message about a file with this header and this number of data bytes.
std::string message(const std::string& header, size_t data_bytes = 0) {
  return error_of([&] { parse_safetensors(file_of(header, data_bytes), "w"); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", name, dtype,
                     shape, offsets);
}

TEST(Safetensors, ReadsAFileWrittenByHand) {
  std::string bytes =
      file_of("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "U8", "2", "8,10") + "," +
                  entry("a", "F32", "2,1", "0,8") + "," + entry("c", "BOOL", "", "10,11") + "}   ",
              11);
  const float values[] = {1.5f, -2.0f};
  std::memcpy(bytes.data() + bytes.size() - 11, values, sizeof values);
  const TensorFile file = parse_safetensors(bytes, "w");
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_TRUE(file.tensors.at("a").equal(at::tensor({1.5f, -2.0f}).reshape({2, 1})));
  EXPECT_TRUE(file.tensors.at("b").equal(at::tensor({1, 1}, at::kByte)));
  EXPECT_EQ(file.tensors.at("c").dim(), 0);
  EXPECT_TRUE(file.tensors.at("c").item<bool>());
  EXPECT_EQ(file.metadata.at("format"), "pt");
}

TEST(Safetensors, ReadsNoTensorsAndEmptyTensors) {
  EXPECT_TRUE(parse_safetensors(file_of("{}", 0), "w").tensors.empty());
  const auto file = parse_safetensors(
      file_of("{" + entry("a", "F32", "0,3", "0,0") + "," + entry("b", "I8", "1", "0,1") + "," +
                  entry("c", "F64", "3,0", "1,1") + "}",
              1),
      "w");
  EXPECT_EQ(file.tensors.at("a").sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(file.tensors.at("c").sizes(), (std::vector<int64_t>{3, 0}));
}

TEST(Safetensors, WritesTensorsByNameAndAligned) {
  TensorFile file;
  file.tensors["b"] = at::tensor({1, 2}, at::kInt);
  file.tensors["a"] = at::tensor({3}, at::kByte);
  const std::string bytes = format_safetensors(file);
  EXPECT_EQ((bytes.size() - 9) % 8, 0u);
  EXPECT_EQ(bytes.substr(8, bytes.size() - 8 - 9).find(R"({"a":{)"), 0u);
  EXPECT_EQ(bytes.substr(bytes.size() - 9), std::string("\3\1\0\0\0\2\0\0\0", 9));
}

TEST(Safetensors, RefusesATruncatedFile) {
  TensorFile file;
  file.tensors["weight"] = at::ones({3, 4});
  file.metadata["a"] = "b";
  const std::string bytes = format_safetensors(file);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string text = error_of([&] { parse_safetensors(bytes.substr(0, length), "w"); });
    EXPECT_TRUE(text.starts_with("w: ")) << length << ": " << text;
  }
  EXPECT_EQ(error_of([&] { parse_safetensors("", "w"); }),
            "w: has 0 bytes, which is too short for a safetensors file");
}

TEST(Safetensors, BoundsTheHeaderBeforeItReadsIt) {
  const auto length_message = [](uint64_t length) {
    return error_of([&] { parse_safetensors(with_length(length, "{}"), "w"); });
  };
  EXPECT_EQ(length_message(3),
            "w: the header is said to have 3 bytes, but only 2 follow; the file is truncated");
  EXPECT_EQ(length_message(100'000'001),
            "w: the header is said to have 100000001 bytes; at most 100000000 are allowed");
  EXPECT_THAT(length_message(~uint64_t{0}), HasSubstr("at most 100000000"));
  EXPECT_THAT(length_message(0), HasSubstr("does not start with '{'"));
}

// The file has its full size: only the length of the header is refused.
TEST(Safetensors, RefusesAHeaderOver100Megabytes) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("w", with_length(120'000'000, "{}"));
  std::filesystem::resize_file(path, 120'000'100);
  EXPECT_THAT(error_of([&] { read_safetensors(path); }), HasSubstr("at most 100000000"));
}

// A sparse file of 6 GB: the header is checked before the rest is read; the size itself is
// accepted.
TEST(Safetensors, RefusesALargeFileByItsHeader) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("w", with_length(uint64_t{1} << 40, "{}"));
  std::filesystem::resize_file(path, uint64_t{6} << 30);
  EXPECT_THAT(error_of([&] { read_safetensors(path); }),
              HasSubstr("the header is said to have 1099511627776 bytes; at most 100000000"));
}

TEST(Safetensors, RefusesOffsetsThatDoNotTileTheData) {
  const std::string a = entry("a", "U8", "4", "0,4");
  EXPECT_EQ(message("{" + a + "," + entry("b", "U8", "4", "2,6") + "}", 6),
            "w: tensor 'b': overlaps another tensor");
  EXPECT_EQ(message("{" + a + "," + entry("b", "U8", "4", "0,4") + "}", 4),
            "w: tensor 'b': overlaps another tensor");
  EXPECT_EQ(message("{" + a + "," + entry("b", "U8", "4", "6,10") + "}", 10),
            "w: tensor 'b': leaves a gap of 2 bytes before it");
  EXPECT_EQ(message("{" + entry("a", "U8", "4", "1,5") + "}", 5),
            "w: tensor 'a': leaves a gap of 1 bytes before it");
  EXPECT_EQ(message("{" + a + "}", 7), "w: 3 bytes follow the last tensor");
  EXPECT_EQ(message("{}", 1), "w: 1 bytes follow the last tensor");
  EXPECT_EQ(message("{" + a + "}", 3),
            "w: tensor 'a': ends at byte 4 of 3 bytes of data; the file is truncated");
  EXPECT_EQ(message("{" + a + "," + entry("b", "U8", "4", "4,0") + "}", 4),
            "w: tensor 'b': data_offsets run backwards");
  EXPECT_THAT(message("{" + entry("a", "U8", "4", "0,18446744073709551615") + "}", 4),
              HasSubstr("truncated"));
}

TEST(Safetensors, RefusesShapesThatDoNotFit) {
  EXPECT_EQ(message("{" + entry("a", "F32", "3", "0,8") + "}", 8),
            "w: tensor 'a': the shape needs 12 bytes, but data_offsets give 8");
  const std::string big = "4294967296,4294967296";
  EXPECT_EQ(message("{" + entry("a", "U8", big, "0,0") + "}"),
            "w: tensor 'a': the shape overflows");
  EXPECT_EQ(message("{" + entry("a", "U8", "0," + big, "0,0") + "}"),
            "w: tensor 'a': the shape overflows");
  EXPECT_EQ(message("{" + entry("a", "F64", "2305843009213693952", "0,0") + "}"),
            "w: tensor 'a': the shape overflows");
  EXPECT_EQ(message("{" + entry("a", "U8", "18446744073709551615", "0,0") + "}"),
            "w: tensor 'a': the shape overflows");
  EXPECT_EQ(message("{" + entry("a", "U8", "-1", "0,0") + "}"),
            "w: header of 'a': 'shape' cannot be a negative number");
  EXPECT_EQ(message("{" + entry("a", "U8", "1.5", "0,0") + "}"),
            "w: header of 'a': 'shape' cannot be a number that is not a 64-bit integer");
  EXPECT_THAT(message("{" + entry("a", "U8", "18446744073709551616", "0,0") + "}"),
              HasSubstr("not a 64-bit integer"));
  std::string axes = "1";
  for (int i = 0; i < 64; ++i) axes += ",1";
  EXPECT_EQ(message("{" + entry("a", "U8", axes, "0,1") + "}", 1),
            "w: header of 'a': over 64 numbers in shape");
}

TEST(Safetensors, RefusesKeysThatComeTwice) {
  const std::string a = entry("a", "U8", "1", "0,1");
  EXPECT_EQ(message("{" + a + "," + a + "}", 1), "w: 'a' is in the header twice");
  EXPECT_EQ(message("{" + a + "," + entry("\\u0061", "U8", "1", "0,1") + "}", 1),
            "w: 'a' is in the header twice");
  EXPECT_EQ(message(R"({"__metadata__":{},"__metadata__":{}})"),
            "w: '__metadata__' is in the header twice");
  EXPECT_EQ(message(R"({"__metadata__":{"k":"1","k":"2"}})"),
            "w: header of '__metadata__': field 'k' is there twice");
  EXPECT_EQ(message(R"({"a":{"dtype":"U8","shape":[],"shape":[1],"data_offsets":[0,1]}})", 1),
            "w: header of 'a': field 'shape' is there twice");
}

TEST(Safetensors, RefusesAnotherLayout) {
  const std::string fields = "w: header of 'a': the fields are not dtype, shape and data_offsets";
  EXPECT_EQ(message(R"({"a":{}})"), fields);
  EXPECT_EQ(message(R"({"a":{"dtype":"U8","shape":[]}})"), fields);
  EXPECT_THAT(message(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":"y"}})", 1),
              HasSubstr("'x' cannot be a string"));
  EXPECT_EQ(message(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0]}})"),
            "w: header of 'a': data_offsets are not two numbers");
  EXPECT_THAT(message(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1,2]}})"),
              HasSubstr("not two numbers"));
  EXPECT_THAT(message(R"({"a":{"dtype":8}})"), HasSubstr("'dtype' cannot be a number"));
  EXPECT_THAT(message(R"({"a":{"dtype":["U8"]}})"), HasSubstr("'dtype' cannot be an array"));
  EXPECT_THAT(message(R"({"a":{"shape":3}})"), HasSubstr("'shape' cannot be a number"));
  EXPECT_THAT(message(R"({"a":{"shape":["3"]}})"), HasSubstr("'shape' cannot be a string"));
  EXPECT_THAT(message(R"({"a":{"shape":[null]}})"), HasSubstr("'shape' cannot be null"));
  EXPECT_THAT(message(R"({"a":{"shape":[true]}})"), HasSubstr("cannot be true or false"));
  EXPECT_THAT(message(R"({"a":3})"), HasSubstr("in place of an object"));
  EXPECT_THAT(message(R"({"a":[]})"), HasSubstr("in place of an object"));
  EXPECT_THAT(message(R"({"__metadata__":{"k":1}})"), HasSubstr("'k' cannot be a number"));
  EXPECT_THAT(message(R"({"__metadata__":{"k":{}}})"), HasSubstr("nested too deep"));
  EXPECT_THAT(message("[]"), HasSubstr("does not start with '{'"));
}

TEST(Safetensors, RefusesTextThatIsNoJson) {
  EXPECT_EQ(message("{"), "w: the header is not valid JSON at its byte 2");
  EXPECT_THAT(message("{} {}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(message("{/**/}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(message("{\"\xff\":{}}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(message("\xEF\xBB\xBF{}"), HasSubstr("does not start with '{'"));
  // The JSON parser ends at a NUL and would miss the rest.
  EXPECT_THAT(message(std::string("{}\0junk", 7)), HasSubstr("NUL byte"));
}

TEST(Safetensors, BoundsTheDepth) {
  std::string arrays, objects;
  for (int i = 0; i < 1'000'000; ++i) {
    arrays += '[';
    objects += "{\"a\":";
  }
  EXPECT_THAT(message(R"({"a":{"shape":)" + arrays), HasSubstr("'shape' cannot be an array"));
  EXPECT_THAT(message(R"({"a":)" + arrays), HasSubstr("in place of an object"));
  EXPECT_THAT(message(objects), HasSubstr("nested too deep"));
}

TEST(Safetensors, BoundsTheTensors) {
  std::string header = "{" + entry("t", "U8", "0", "0,0");
  for (int i = 0; i < 100'000; ++i) header += "," + entry(std::to_string(i), "U8", "0", "0,0");
  EXPECT_EQ(message(header + "}"), "w: has over 100000 tensors");
}

TEST(Safetensors, RefusesUnknownDtypesAndValues) {
  EXPECT_EQ(message("{" + entry("a", "F8_E4M3", "1", "0,1") + "}", 1),
            "w: tensor 'a': unknown dtype 'F8_E4M3'");
  EXPECT_THAT(message("{" + entry("a", "f32", "1", "0,4") + "}", 4), HasSubstr("unknown dtype"));
  std::string bytes = file_of("{" + entry("a", "BOOL", "1", "0,1") + "}", 1);
  bytes.back() = '\2';
  EXPECT_EQ(error_of([&] { parse_safetensors(bytes, "w"); }),
            "w: tensor 'a': a BOOL is neither 0 nor 1");
}

TEST(Safetensors, KeepsMessagesOnOneLine) {
  EXPECT_EQ(message("{" + entry("a\\nb", "X", "1", "0,1") + "}", 1),
            "w: tensor 'a\\x0ab': unknown dtype 'X'");
}

TEST(Safetensors, NamesWhatCannotBeWritten) {
  const auto write_error = [](const std::string& name, const at::Tensor& tensor) {
    TensorFile file;
    file.tensors[name] = tensor;
    return error_of([&] { format_safetensors(file); });
  };
  EXPECT_THAT(write_error("a", at::ones({1}, at::kComplexFloat)), HasSubstr("'a': dtype"));
  EXPECT_THAT(write_error("a", at::Tensor()), HasSubstr("is undefined"));
  EXPECT_THAT(write_error("a", at::ones({2, 2}).to_sparse()), HasSubstr("only dense"));
  EXPECT_THAT(write_error("__metadata__", at::ones({1})), HasSubstr("reserved"));
  EXPECT_THAT(write_error("\xff", at::ones({1})), HasSubstr("not UTF-8"));
  EXPECT_THAT(write_error("a", at::ones(std::vector<int64_t>(65, 1))), HasSubstr("65 axes"));
}

TEST(Safetensors, WritesViewsAsTheyRead) {
  TensorFile file;
  const at::Tensor base = at::arange(12, at::kFloat).reshape({3, 4});
  file.tensors["transposed"] = base.t();
  file.tensors["strided"] = base.slice(1, 0, 4, 2);
  file.tensors["gradient"] = base.clone().set_requires_grad(true);
  const TensorFile same = parse_safetensors(format_safetensors(file), "w");
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_TRUE(same.tensors.at(name).equal(tensor)) << name;
    EXPECT_FALSE(same.tensors.at(name).requires_grad());
  }
}

TEST(Safetensors, RestoresEveryBit) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(rc::check("read(write(file)) is file", [&] {
    const auto type = rc::gen::element(at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                       at::kInt, at::kShort, at::kChar, at::kByte, at::kBool);
    const auto name = rc::gen::element<std::string>("w", "layer.0.weight", "é", "a b", "\"", "",
                                                    "\n", std::string(1, '\0'));
    TensorFile file;
    std::mt19937_64 random(*rc::gen::arbitrary<uint64_t>());
    for (const std::string& key : *rc::gen::container<std::vector<std::string>>(name)) {
      const auto shape = *rc::gen::resize(
          4, rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 4)));
      at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(*type));
      auto* bytes = static_cast<unsigned char*>(tensor.data_ptr());
      const bool flags = tensor.scalar_type() == at::kBool;
      for (size_t i = 0; i < tensor.nbytes(); ++i) {
        bytes[i] = static_cast<unsigned char>(random() & (flags ? 1 : 255));
      }
      file.tensors[key] = tensor;
      file.metadata[key] = key;
    }
    write_safetensors(folder / "w", file);
    const TensorFile same = read_safetensors(folder / "w");
    RC_ASSERT(same.metadata == file.metadata);
    RC_ASSERT(same.tensors.size() == file.tensors.size());
    for (const auto& [key, tensor] : file.tensors) {
      const at::Tensor& other = same.tensors.at(key);
      RC_ASSERT(other.scalar_type() == tensor.scalar_type());
      RC_ASSERT(other.sizes() == tensor.sizes());
      // By bytes, because a NaN is not equal to itself. RC_ASSERT evaluates both sides of its own
      // ||.
      const bool same_bytes =
          tensor.nbytes() == 0 ||
          std::memcmp(other.data_ptr(), tensor.data_ptr(), tensor.nbytes()) == 0;
      RC_ASSERT(same_bytes);
    }
  }));
}

}  // namespace safetensors_test
}  // namespace attend
