#pragma once

#include <string_view>

namespace attend {

enum class Part { train, valid, test };

// The part of a source, or of its key (source_key): h = FNV-1a of 64 bits over its UTF-8 spelling
// in NFC, modulo 100; train below 90, valid below 95, else test. The same on every machine, and
// whatever else the file holds.
Part part_of(std::string_view source);

}  // namespace attend
