#include "attend/data/readable.h"

#include <optional>

#include "attend/base/error.h"
#include "attend/data/frames.h"

namespace attend {

int64_t take_out_unreadable(std::vector<Example>& examples, bool images, FrameConfig& config,
                            const std::function<void(const std::string& reason)>& tell) {
  std::optional<FrameReader> reader;
  const auto is_unreadable = [&](const Example& example) {
    try {
      if (!reader) {
        if (images) take_image_size({example}, config);
        reader.emplace(images, config);
      }
      reader->read(example.source);
      return false;
    } catch (const Error& error) {
      tell(error.what());
      return true;
    }
  };
  return static_cast<int64_t>(std::erase_if(examples, is_unreadable));
}

}  // namespace attend
