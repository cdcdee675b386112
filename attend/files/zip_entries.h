#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace attend {

// Calls visit(entry, bytes) for each entry of a ZIP archive, in their order. Strict: stored or
// deflated entries without encryption, with matching sizes and checksums. There are at most 10,000,
// and they have at most the bytes that deflate can pack into the file. Otherwise Error, naming the
// file and the entry. `kind` names the format in messages, such as "an .npz file".
using ZipVisitor = std::function<void(const std::string& entry, const std::string& bytes)>;
void read_zip(std::string_view bytes, const std::string& name, std::string_view kind,
              const ZipVisitor& visit);

}  // namespace attend
