#include <vector>

#include "attend/files/hdf5_format-inl.h"

namespace attend::internal {
namespace {

constexpr size_t maximum_messages = 10'000;

}  // namespace

Hdf5Bytes Hdf5Bytes::part(uint64_t begin, uint64_t size) const {
  if (begin > bytes_.size() || size > bytes_.size() - begin)
    refuse("is damaged or cut off: {} bytes at {} lie outside of its {} bytes", size, begin,
           bytes_.size());
  return {bytes_.substr(begin, size), *name_};
}

Hdf5Bytes Hdf5Bytes::from(uint64_t begin) const {
  return part(begin, begin > bytes_.size() ? 0 : bytes_.size() - begin);
}

uint64_t Hdf5Bytes::number(uint64_t begin, int bytes) const {
  uint64_t value = 0;
  const std::string_view digits = part(begin, static_cast<uint64_t>(bytes)).view();
  for (size_t i = digits.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(digits[i]);
  return value;
}

std::string Hdf5Bytes::text(uint64_t begin) const {
  const std::string_view rest = from(begin).view();
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) refuse("is damaged: a name has no end");
  return std::string(rest.substr(0, end));
}

void Hdf5Bytes::check_signature(std::string_view signature) const {
  if (!bytes_.starts_with(signature))
    refuse("is damaged: a block lacks its signature {}", in_quotes(signature));
}

// A header of version 1: version, number of messages, references and size in 16 bytes, then the
// messages. Each has 8 bytes of type, size and flags.
void for_each_hdf5_message(const Hdf5Bytes& file, uint64_t address,
                           const std::function<void(Hdf5Message, const Hdf5Bytes&)>& visit) {
  constexpr uint64_t prefix = 16, message_prefix = 8;
  const Hdf5Bytes header = file.from(address);
  if (header.view().starts_with("OHDR") || header.number(0, 1) != 1)
    file.refuse(
        "has an object header of a later version; h5py writes version 1 unless libver or "
        "track_order is set");
  std::vector<Hdf5Bytes> blocks = {header.part(prefix, header.number(8, 4))};
  size_t left = header.number(2, 2);
  for (size_t block = 0; block < blocks.size(); ++block) {
    for (uint64_t offset = 0; left > 0 && offset + message_prefix <= blocks[block].size(); --left) {
      const auto type = static_cast<Hdf5Message>(blocks[block].number(offset, 2));
      const uint64_t size = blocks[block].number(offset + 2, 2);
      const Hdf5Bytes data = blocks[block].part(offset + message_prefix, size);
      constexpr uint64_t is_shared = 2;
      if ((blocks[block].number(offset + 4, 1) & is_shared) != 0)
        file.refuse("has messages that several objects share; only plain files are read");
      offset += message_prefix + size;
      if (type != Hdf5Message::continuation)
        visit(type, data);
      else if (blocks.size() < maximum_messages)
        blocks.push_back(file.part(data.number(0, 8), data.number(8, 8)));
    }
  }
}

}  // namespace attend::internal
