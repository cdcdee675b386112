#include "attend/files/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "tests/support/files.h"

namespace attend {
namespace npy_test {

using test::error_of;
using testing::HasSubstr;

// A .npy file of this version with this header, unpadded, and these data.
std::string file_of(int version, const std::string& header, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(version), '\0'};
  const auto length = static_cast<uint32_t>(header.size());
  bytes.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return bytes + header + data;
}

std::string header_of(const std::string& descr, const std::string& order,
                      const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// The message about a version 1 file with this header and these data.
std::string message(const std::string& header, const std::string& data = "") {
  return error_of([&] { parse_npy(file_of(1, header, data), "a.npy"); });
}

TEST(Npy, ReadsEveryVersionAndOrder) {
  const std::string data = bytes_of<double>({1, 2, 3, 4, 5, 6});
  const at::Tensor counted = at::arange(1, 7, at::kDouble);
  for (const int version : {1, 2, 3}) {
    const auto c_order =
        parse_npy(file_of(version, header_of("<f8", "False", "(2, 3)"), data), "a");
    EXPECT_TRUE(c_order.equal(counted.reshape({2, 3})));
    const auto fortran = parse_npy(file_of(version, header_of("<f8", "True", "(2, 3)"), data), "a");
    EXPECT_TRUE(fortran.equal(counted.reshape({3, 2}).t()));
    EXPECT_TRUE(fortran.is_contiguous());
  }
}

TEST(Npy, ReadsEveryDtype) {
  const auto read = [](const std::string& descr, const std::string& data) {
    return parse_npy(file_of(1, header_of(descr, "False", "(2,)"), data), "a");
  };
  EXPECT_TRUE(read("<f8", bytes_of<double>({1.5, -2})).equal(at::tensor({1.5, -2.}, at::kDouble)));
  EXPECT_TRUE(read("<f4", bytes_of<float>({1.5F, -2})).equal(at::tensor({1.5F, -2.F})));
  EXPECT_TRUE(read("<f2", std::string("\x00\x3e\x00\xc0", 4))
                  .equal(at::tensor({1.5F, -2.F}).to(at::kHalf)));
  EXPECT_TRUE(read("<i8", bytes_of<int64_t>({1, -2})).equal(at::tensor({1, -2}, at::kLong)));
  EXPECT_TRUE(read("<i4", bytes_of<int32_t>({1, -2})).equal(at::tensor({1, -2}, at::kInt)));
  for (const char* order : {"|", "<"}) {
    const std::string prefix = order;
    EXPECT_TRUE(read(prefix + "u1", "\x01\xff").equal(at::tensor({1, 255}, at::kByte)));
    EXPECT_TRUE(
        read(prefix + "b1", std::string("\x01\x00", 2)).equal(at::tensor({1, 0}).to(at::kBool)));
  }
}

TEST(Npy, ReadsAnyHeaderThatPythonWouldWrite) {
  const std::string data = bytes_of<float>({1, 2});
  for (const char* header :
       {"{'descr':'<f4','fortran_order':False,'shape':(2,)}",
        "{\"shape\": (2,), \"descr\": \"<f4\", \"fortran_order\": False}  \n",
        "  { 'fortran_order' : False , 'shape' : ( 2 , ) , 'descr' : '<f4' , } "})
    EXPECT_EQ(parse_npy(file_of(1, header, data), "a").numel(), 2) << header;
  EXPECT_EQ(parse_npy(file_of(1, header_of("<f4", "False", "()"), bytes_of<float>({7})), "a")
                .item<float>(),
            7);
  EXPECT_EQ(parse_npy(file_of(1, header_of("<f4", "True", "(0, 3)"), ""), "a").sizes(),
            (std::vector<int64_t>{0, 3}));
}

TEST(Npy, WritesWhatNumPyWrites) {
  // numpy.save of numpy.array([[1, 2]], dtype="<i4").
  const std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }";
  const std::string expected = file_of(1, header + std::string(118 - header.size() - 1, ' ') + "\n",
                                       bytes_of<int32_t>({1, 2}));
  EXPECT_EQ(expected.size(), 128 + 8U);
  EXPECT_EQ(format_npy(at::tensor({1, 2}, at::kInt).view({1, 2})), expected);
  EXPECT_THAT(format_npy(at::zeros({3})), HasSubstr("'shape': (3,), }"));
  EXPECT_THAT(format_npy(at::zeros({})), HasSubstr("'shape': (), }"));
}

TEST(Npy, ReadsBackWhatItWrites) {
  at::manual_seed(1);
  EXPECT_TRUE(rc::check([] {
    std::vector<int64_t> shape;
    for (int64_t axes = *rc::gen::inRange<int64_t>(0, 5); axes > 0; --axes)
      shape.push_back(*rc::gen::inRange<int64_t>(0, 4));
    const auto type = *rc::gen::element(at::kDouble, at::kFloat, at::kHalf, at::kLong, at::kInt,
                                        at::kByte, at::kBool);
    at::Tensor tensor = at::randint(0, 2, shape, at::kDouble).to(type);
    if (tensor.dim() > 1) tensor = tensor.transpose(0, 1);
    const std::string bytes = format_npy(tensor);
    const at::Tensor back = parse_npy(bytes, "a");
    RC_ASSERT(back.scalar_type() == type && back.sizes() == tensor.sizes());
    RC_ASSERT(back.equal(tensor));
    // The data begin at a multiple of 64, and every cut is an error.
    RC_ASSERT((bytes.size() - tensor.nbytes()) % 64 == 0);
    const size_t cut = *rc::gen::inRange<size_t>(0, bytes.size());
    RC_ASSERT(!error_of([&] { parse_npy(bytes.substr(0, cut), "a"); }).empty());
  }));
}

TEST(Npy, WritesAndReadsFiles) {
  const test::TemporaryFolder folder;
  const at::Tensor tensor = at::arange(6, at::kDouble).view({2, 3});
  write_npy(folder / "a.npy", tensor);
  EXPECT_TRUE(read_npy(folder / "a.npy").equal(tensor));
  EXPECT_EQ(folder.entries(), 1U);
  EXPECT_THAT(error_of([&] { read_npy(folder / "b.npy"); }), HasSubstr("b.npy: no such file"));
}

TEST(Npy, RefusesBrokenBeginnings) {
  const auto read = [](const std::string& bytes) {
    return error_of([&] { parse_npy(bytes, "a.npy"); });
  };
  EXPECT_THAT(read(""), HasSubstr("a.npy: is not a .npy file"));
  EXPECT_THAT(read("PK\3\4"), HasSubstr("a.npy: is not a .npy file"));
  EXPECT_THAT(read("\x93NUMPY\1"), HasSubstr("truncated within its first 8 bytes"));
  EXPECT_THAT(read(std::string("\x93NUMPY\1\0\1", 9)), HasSubstr("its first 10 bytes"));
  EXPECT_THAT(read(file_of(4, "", "")), HasSubstr("has .npy version 4"));
  EXPECT_THAT(read(file_of(0, "", "")), HasSubstr("has .npy version 0"));
  EXPECT_THAT(read(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)),
              HasSubstr("said to have 4294967295 bytes; at most 65535"));
  EXPECT_THAT(read(std::string("\x93NUMPY\1\0\x10\0{", 11)), HasSubstr("but only 1 follow"));
}

TEST(Npy, RefusesBrokenHeaders) {
  const std::string number =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}";
  std::string axes = "(";
  for (int i = 0; i < 65; ++i) axes += "1, ";
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "'{' is missing"},
      {"[]", "'{' is missing"},
      {"{}", "lacks descr, fortran_order or shape"},
      {"{'descr': '<f4', 'shape': (1,)}", "lacks descr"},
      {"{'descr': '<f4'", "',' is missing"},
      {"{'descr", "a quoted word has no end"},
      {"{descr: 1}", "a quoted word is missing"},
      {"{'descr': '<f4', 'descr': '<f4'}", "unknown or comes twice"},
      {"{'dscr': '<f4'}", "key 'dscr' is unknown"},
      {"{'fortran_order': 0}", "True or False is missing"},
      {"{'descr': [('a', '<f4')]}", "holds records"},
      {"{'shape': 3}", "'(' is missing"},
      {"{'shape': (3)}", "the shape is not a tuple"},
      {"{'shape': (-3,)}", "a length is not a number"},
      {"{'shape': (3, x)}", "a length is not a number"},
      {"{'shape': (,)}", "a length is not a number"},
      {"{'shape': (1 2)}", "',' is missing"},
      {number, "a length is not a number that fits 64 bits"},
      {"{'shape': " + axes + ")}", "more than 64 axes"},
      {header_of("<f4", "False", "()") + "x", "something follows the dictionary"},
      {header_of("<f4", "False", "(2305843009213693952, 4)"), "does not fit any memory"},
      {header_of("<f4", "False", "(0, 9223372036854775807, 3)"), "does not fit any memory"},
      {header_of(">f4", "False", "()"), "is big-endian ('>f4'); save array.astype"},
      {header_of("<c8", "False", "()"), "has dtype '<c8'; save it as one of <f8, <f4"},
      {header_of("|O", "False", "()"), "has dtype '|O'"},
  };
  for (const auto& [header, expected] : cases) {
    EXPECT_THAT(message(header), HasSubstr(expected)) << header;
    EXPECT_THAT(message(header), testing::StartsWith("a.npy: ")) << header;
  }
}

TEST(Npy, RefusesDataOfAnotherSize) {
  const std::string header = header_of("<f4", "False", "(2,)");
  EXPECT_THAT(message(header, std::string(7, 'x')), HasSubstr("takes 8 bytes, but 7 follow"));
  EXPECT_THAT(message(header, std::string(9, 'x')), HasSubstr("takes 8 bytes, but 9 follow"));
  EXPECT_THAT(message(header_of("<f4", "False", "(1000000000, 1000)")), HasSubstr("but 0 follow"));
  EXPECT_THAT(message(header_of("|b1", "False", "(1,)"), "\2"), HasSubstr("neither 0 nor 1"));
}

TEST(Npy, RefusesToWriteOtherDtypes) {
  EXPECT_THAT(error_of([] { format_npy(at::zeros({2}).to(at::kBFloat16)); }),
              HasSubstr("a BFloat16 tensor cannot be stored; convert it to float32"));
  EXPECT_THAT(error_of([] { format_npy(at::Tensor()); }), HasSubstr("undefined"));
}

}  // namespace npy_test
}  // namespace attend
