#include "attend/data/readable.h"

#include "attend/base/error.h"

namespace attend {

int64_t take_out_unreadable(const std::vector<std::vector<Example>*>& parts, FrameReader& reader,
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
  size_t all = 0, bad = 0;
  for (std::vector<Example>* part : parts) {
    all += part->size();
    bad += std::erase_if(*part, is_unreadable);
    if (part->empty()) fail("{}: none of its sources can be read", name);
  }
  if (bad > 0)
    tell(fmt::format("{}: {} of {} examples cannot be read and are left out", name, bad, all));
  return static_cast<int64_t>(bad);
}

}  // namespace attend
