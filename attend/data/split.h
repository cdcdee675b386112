#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attend {

enum class Part { train, valid, test };

// Returns the part of a source, or of its key (source_key). h is the 64-bit FNV-1a hash of its
// UTF-8 spelling in NFC, modulo 100. Train if h < 90, valid if h < 95, otherwise test. The result
// does not depend on the machine or on the other sources.
Part part_of(std::string_view source);

// Returns for each example, by the key of its source, whether it is held out for validation: the
// sources of Part::valid, and more if they are fewer than six and fewer than a twentieth of all
// sources. At least one source is not held out.
std::vector<bool> held_out(const std::vector<std::string>& keys);

}  // namespace attend
