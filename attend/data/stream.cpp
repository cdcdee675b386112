#include "attend/data/stream.h"

#include <utility>

#include "attend/base/error.h"
#include "attend/base/random.h"

namespace attend {

ExampleStream::ExampleStream(std::vector<PairFiles> files, int64_t buffer, uint64_t seed,
                             int64_t epoch)
    : files_(std::move(files)),
      random_(internal::generator(seed, epoch)),
      buffer_size_(static_cast<size_t>(buffer)) {
  if (buffer < 1) fail("[ExampleStream] a buffer of {} examples; at least 1 is needed", buffer);
  // Reports a missing file now, not hours later.
  for (const PairFiles& pair : files_) PairReader check(pair);
}

bool ExampleStream::read(Example& example) {
  example.targets.resize(1);
  while (true) {
    if (reader_ && reader_->next(example.source, example.targets[0])) {
      example.line = reader_->line();
      return true;
    }
    if (next_file_ == files_.size()) return false;
    reader_ = std::make_unique<PairReader>(files_[next_file_++]);
  }
}

bool ExampleStream::next(Example& example) {
  Example read_next;
  while (buffer_.size() < buffer_size_ && read(read_next)) buffer_.push_back(std::move(read_next));
  if (buffer_.empty()) return false;
  std::swap(buffer_[internal::draw_below(buffer_.size(), random_)], buffer_.back());
  example = std::move(buffer_.back());
  buffer_.pop_back();
  return true;
}

}  // namespace attend
