// Reads files for tools/conform_files.py. Each line of standard input is a request with fields
// between TABs. The answer is one line of JSON, {"error": message} if the file cannot be read.
//
//   image COLOURS FILE                      {height, width, transparent, pixels: hexadecimal}
//   pairs FILE SOURCE_COLUMN TARGET_COLUMN  {pairs: [[source, target]]}
//   text FILE                               {text}
//   sound FILE                              {rate, samples}
//   items FILE                              {sequences: [[user, [item]]]}

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attend/base/error.h"
#include "attend/data/interactions.h"
#include "attend/data/pairs.h"
#include "attend/files/audio.h"
#include "attend/files/image.h"

namespace {

using nlohmann::json;

std::vector<std::string> between_tabs(const std::string& line) {
  std::vector<std::string> parts(1);
  for (const char c : line)
    if (c == '\t')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

json image(const std::string& colours, const std::string& path) {
  const attend::Image image =
      attend::read_image(path, colours == "rgb" ? attend::Colours::rgb : attend::Colours::grey);
  std::string pixels;
  for (const char byte : image.pixels) pixels += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return {{"height", image.height},
          {"width", image.width},
          {"transparent", image.transparent},
          {"pixels", pixels}};
}

json pairs(const std::string& path, const std::string& source, const std::string& target) {
  json all = json::array();
  for (const attend::Example& pair : attend::read_pairs({path, "", source, target}))
    all.push_back({pair.source, pair.targets[0]});
  return {{"pairs", all}};
}

json sound(const std::string& path) {
  const attend::Sound sound = attend::read_sound(path);
  const auto* first = sound.samples.data_ptr<float>();
  return {{"rate", sound.rate},
          {"samples", std::vector<float>(first, first + sound.samples.numel())}};
}

json items(const std::string& path) {
  json all = json::array();
  for (const attend::ItemSequence& sequence : attend::read_interactions(path, {}))
    all.push_back({sequence.user, sequence.items});
  return {{"sequences", all}};
}

json answer(const std::vector<std::string>& request) {
  const std::string& kind = request.at(0);
  if (kind == "image") return image(request.at(1), request.at(2));
  if (kind == "pairs") return pairs(request.at(1), request.at(2), request.at(3));
  if (kind == "text") return {{"text", attend::read_text(request.at(1))}};
  if (kind == "sound") return sound(request.at(1));
  if (kind == "items") return items(request.at(1));
  attend::fail("no request is called {}", kind);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    json result;
    try {
      result = answer(between_tabs(line));
    } catch (const attend::Error& error) {
      result = {{"error", error.what()}};
    }
    std::cout << result.dump() << std::endl;
  }
}
