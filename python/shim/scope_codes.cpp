#include "python/shim/scope_codes.h"

#include "attend/base/error.h"

namespace attend::shim {
namespace {

// Reads the numbers of a scope one after another.
class Reader {
 public:
  Reader(const AttentionCall& call, const kernels::Shape& shape) : call_(call), shape_(shape) {}

  bool ended() const { return next_ == call_.scope.size(); }

  int64_t number() {
    if (ended()) fail("[attend] scope ends within a condition");
    return call_.scope[next_++];
  }

  // A tensor of the call; an absent array for -1.
  Array tensor() {
    const int64_t index = number();
    if (index == -1) return {};
    if (index < 0 || index >= static_cast<int64_t>(call_.tensors.size()))
      fail("[attend] scope names tensor {}; there are {}", index, call_.tensors.size());
    return call_.tensors[static_cast<size_t>(index)];
  }

  Array required_tensor() {
    const Array x = tensor();
    if (!x.given) fail("[attend] a condition of the scope lacks its tensor");
    return x;
  }

  const int64_t* numbers_per_entry(const char* name) {
    const Array x = tensor();
    expect_contiguous(name, x, Type::int64, {{shape_.batch}});
    return pointer<const int64_t>(x);
  }

  const kernels::Shape& shape() const { return shape_; }

 private:
  const AttentionCall& call_;
  const kernels::Shape& shape_;
  size_t next_ = 0;
};

kernels::Condition window(Reader& read) {
  kernels::Window window;
  window.left = read.number();
  window.right = read.number();
  window.offset = read.number();
  window.dilation = read.number();
  window.offsets = read.numbers_per_entry("offsets of the window");
  return window;
}

kernels::Condition segments(Reader& read) {
  const Array queries = read.required_tensor(), keys = read.required_tensor();
  for (const Array* starts : {&queries, &keys})
    expect_contiguous("segments", *starts, Type::int64, {{queries.size(0)}});
  return kernels::Segments{pointer<const int64_t>(queries), pointer<const int64_t>(keys),
                           queries.size(0) - 1};
}

kernels::Condition blocks(Reader& read) {
  const Array x = read.required_tensor();
  const int64_t block = read.number();
  const kernels::Shape& s = read.shape();
  kernels::BlockLayout layout;
  layout.block = block;
  layout.first_query = read.number();
  layout.first_key = read.number();
  const int64_t rows = block < 1 ? 0 : (s.queries + layout.first_query + block - 1) / block;
  expect("layout of the blocks", x, Type::byte,
         {{s.batch, true}, {s.heads, true}, {rows}, {x.last()}});
  if (x.size(2) > 1 && x.stride(2) != x.last())
    fail("[attend] the layout of the blocks is not contiguous");
  layout.layout = pointer<const uint8_t>(x);
  layout.columns = x.last();
  layout.batch_stride = x.stride(0);
  layout.head_stride = x.stride(1);
  return layout;
}

kernels::Condition mask(Reader& read) {
  const Array x = read.required_tensor();
  const kernels::Shape& s = read.shape();
  expect_shape("mask", x, Type::byte,
               {{s.batch, true}, {s.heads, true}, {s.queries, true}, {s.keys, true}});
  return kernels::DenseMask{pointer<const uint8_t>(x), x.stride(0), x.stride(1), x.stride(2),
                            x.stride(3)};
}

kernels::Condition around(Reader& read) {
  const Array x = read.required_tensor();
  const kernels::Shape& s = read.shape();
  expect("centres of around", x, Type::float64,
         {{s.batch, true}, {s.heads, true}, {s.queries, true}});
  return kernels::Around{pointer<const double>(x), x.stride(0), x.stride(1), x.stride(2),
                         read.number()};
}

kernels::Condition edges(Reader& read) {
  const Array offsets = read.required_tensor(), keys = read.required_tensor();
  const kernels::Shape& s = read.shape();
  expect("offsets of the edges", offsets, Type::int64,
         {{s.batch, true}, {s.heads, true}, {s.queries + 1}});
  expect_contiguous("keys of the edges", keys, Type::int64, {{keys.size(0)}});
  return kernels::EdgeLists{pointer<const int64_t>(offsets),
                            pointer<const int64_t>(keys),
                            keys.size(0),
                            offsets.stride(0),
                            offsets.stride(1),
                            nullptr};
}

kernels::Condition condition(Code code, Reader& read) {
  switch (code) {
    case Code::window:
      return window(read);
    case Code::key_lengths:
      return kernels::KeyLengths{read.numbers_per_entry("key_lengths")};
    case Code::query_lengths:
      return kernels::QueryLengths{read.numbers_per_entry("query_lengths")};
    case Code::prefix:
      return kernels::Prefix{read.number()};
    case Code::global_rows:
      return kernels::GlobalRows{read.number()};
    case Code::segments:
      return segments(read);
    case Code::blocks:
      return blocks(read);
    case Code::mask:
      return mask(read);
    case Code::around:
      return around(read);
    case Code::edges:
      return edges(read);
    case Code::end_of_clause:
      break;
  }
  fail("[attend] scope has the unknown code {}", static_cast<int64_t>(code));
}

}  // namespace

kernels::Scope decoded_scope(const AttentionCall& call, const kernels::Shape& shape) {
  kernels::Scope scope;
  Reader read(call, shape);
  while (!read.ended()) {
    kernels::Clause& clause = scope.any_of.emplace_back();
    for (auto code = static_cast<Code>(read.number()); code != Code::end_of_clause;
         code = static_cast<Code>(read.number()))
      clause.push_back(condition(code, read));
  }
  return scope;
}

}  // namespace attend::shim
