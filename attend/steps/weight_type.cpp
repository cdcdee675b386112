#include "attend/steps/weight_type.h"

#include "attend/base/error.h"

namespace attend {

WeightType parse_weight_type(const std::string& name) {
  if (name == "float32") return WeightType::float32;
  if (name == "bfloat16") return WeightType::bfloat16;
  if (name == "int8") return WeightType::int8;
  fail("no weights are kept as {}; there are float32, bfloat16 and int8", in_quotes(name));
}

}  // namespace attend
