#include "attend/data/readable.h"

#include "attend/base/error.h"

namespace attend {

int64_t take_out_unreadable(std::vector<Example>& examples, FrameReader& reader,
                            const std::string& name, const Tell& tell) {
  const auto is_unreadable = [&](const Example& example) {
    try {
      reader.read(example.source);
      return false;
    } catch (const Error& error) {
      tell(error.what());
      return true;
    }
  };
  const size_t all = examples.size(), bad = std::erase_if(examples, is_unreadable);
  if (bad > 0 && examples.empty()) fail("{}: none of its sources can be read", name);
  if (bad > 0)
    tell(fmt::format("{}: {} of {} examples cannot be read and are left out", name, bad, all));
  return static_cast<int64_t>(bad);
}

}  // namespace attend
