#pragma once

#include <string_view>

namespace attend {

enum class Part { train, valid, test };

// Returns the part of a source, or of its key (source_key). h is the 64-bit FNV-1a hash of its
// UTF-8 spelling in NFC, modulo 100. Train if h < 90, valid if h < 95, otherwise test. The result
// does not depend on the machine or on the other sources.
Part part_of(std::string_view source);

}  // namespace attend
