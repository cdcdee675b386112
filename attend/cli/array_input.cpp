#include "attend/cli/array_input.h"

#include <ATen/ATen.h>

#include "attend/base/error.h"
#include "attend/base/file_formats.h"
#include "attend/base/suffix.h"
#include "attend/files/npy.h"
#include "attend/files/tensor_json.h"

namespace attend {
namespace {

using at::Tensor;

constexpr std::string_view results_suffix = ".npz";

// File type of arrays, by its suffix.
struct ArrayFile {
  std::string_view suffix, note;
  Tensor (*read)(const std::string& path);
  bool is_json;
};

const std::vector<ArrayFile>& array_files() {
  static const std::vector<ArrayFile> table = {
      {".npy", "", [](const std::string& path) { return read_npy(path); }, false},
      {".json", "", [](const std::string& path) { return read_tensor_json(path); }, true}};
  return table;
}

}  // namespace

ArrayInput read_input(const std::string& path, const char* option) {
  const ArrayFile* file = format_of(array_files(), path);
  if (!file)
    fail("{} {}: the name must end in {}", option, in_quotes(path),
         listed_formats(array_files(), [](const ArrayFile&) { return true; }));
  return {path, file->read(path), file->is_json};
}

at::ScalarType common_dtype(const std::vector<const ArrayInput*>& inputs) {
  const ArrayInput* first = nullptr;
  for (const ArrayInput* input : inputs) {
    const at::ScalarType type = input->tensor.scalar_type();
    if (input->is_json) continue;
    if (!at::isFloatingType(type))
      fail("{}: has dtype {}; save it as float32 or float64", input->origin, dtype_name(type));
    if (!first) first = input;
    if (type != first->tensor.scalar_type())
      fail("{}: has dtype {}, {} {}; save both alike", input->origin, dtype_name(type),
           first->origin, dtype_name(first->tensor.scalar_type()));
  }
  return first ? first->tensor.scalar_type() : at::kDouble;
}

Tensor as_numbers(const ArrayInput& input, at::ScalarType dtype) {
  if (input.tensor.scalar_type() == at::kBool)
    fail("{}: holds true and false; give numbers", input.origin);
  return input.tensor.to(dtype);
}

void check_results_name(const std::string& out) {
  if (!out.empty() && !has_suffix(out, results_suffix))
    fail("--out {}: the results are an {} file; name it so", in_quotes(out), results_suffix);
}

std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "float64";
    case at::kFloat:
      return "float32";
    case at::kHalf:
      return "float16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    default:
      return c10::toString(type);
  }
}

}  // namespace attend
