#include "attend/models/pair_model.h"

namespace attend {

std::shared_ptr<PairNetwork> PairModel::make_network() const {
  return config.chosen().make_network(source_shape(), target_vocabulary.size());
}

SourceShape PairModel::source_shape() const {
  const FrameConfig& frames = text.frames;
  if (!text.reads_frames()) return {source_vocabulary.size()};
  if (text.reads_images()) return {frames.patch * frames.patch, {frames.rows(), frames.columns()}};
  return {frames.stack * frames.mel_bands, {}};
}

std::string PairModel::target_text(const std::vector<int64_t>& ids) const {
  return codecs.target.join(target_vocabulary.decode(ids));
}

}  // namespace attend
