#include <array>
#include <string_view>
#include <utility>

#include "attend/base/error.h"
#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/decoder-inl.h"
#include "attend/tokenizers/splitter-inl.h"

namespace attend::internal {
namespace {

void replace_all(std::string& text, std::string_view searched, std::string_view replacement) {
  for (size_t found = text.find(searched); found != text.npos;
       found = text.find(searched, found + replacement.size()))
    text.replace(found, searched.size(), replacement);
}

// Applied in this order.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> clean_ups = {{
    {" .", "."},
    {" ?", "?"},
    {" !", "!"},
    {" ,", ","},
    {" ' ", "'"},
    {" n't", "n't"},
    {" 'm", "'m"},
    {" do not", " don't"},
    {" 's", "'s"},
    {" 've", "'ve"},
    {" 're", "'re"},
}};

class WordPieceDecoder : public TokenDecoder {
 public:
  WordPieceDecoder(std::string prefix, bool clean_up)
      : prefix_(std::move(prefix)), clean_up_(clean_up) {}

  std::string decode(const std::vector<std::string>& tokens) const override {
    std::string text;
    bool is_first = true;
    for (const std::string& token : tokens) {
      const bool continues = !is_first && token.starts_with(prefix_);
      std::string part = is_first ? token : continues ? token.substr(prefix_.size()) : " " + token;
      is_first = false;
      if (clean_up_)
        for (const auto& [searched, replacement] : clean_ups)
          replace_all(part, searched, replacement);
      text += part;
    }
    return text;
  }

 private:
  std::string prefix_;
  bool clean_up_;
};

class ByteLevelDecoder : public TokenDecoder {
 public:
  std::string decode(const std::vector<std::string>& tokens) const override {
    std::string bytes, spelled;
    for (const std::string& token : tokens) {
      spelled.clear();
      bool whole = true;
      for (size_t position = 0; position < token.size() && whole;) {
        const int byte = byte_spelled_by(next_point(token, position));
        whole = byte >= 0;
        spelled.push_back(static_cast<char>(byte));
      }
      // A token with other characters, such as an added one, is kept as it is.
      bytes += whole ? spelled : token;
    }
    std::string changed;
    return std::string(well_formed(bytes, changed));
  }
};

class MetaspaceDecoder : public TokenDecoder {
 public:
  MetaspaceDecoder(std::string mark, bool drop_first)
      : mark_(std::move(mark)), drop_first_(drop_first) {}

  std::string decode(const std::vector<std::string>& tokens) const override {
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string part = tokens[i];
      replace_all(part, mark_, i == 0 && drop_first_ ? "" : " ");
      text += part;
    }
    return text;
  }

 private:
  std::string mark_;
  bool drop_first_;
};

class SuffixDecoder : public TokenDecoder {
 public:
  explicit SuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  std::string decode(const std::vector<std::string>& tokens) const override {
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string part = tokens[i];
      replace_all(part, suffix_, i + 1 == tokens.size() ? "" : " ");
      text += part;
    }
    return text;
  }

 private:
  std::string suffix_;
};

class SpacesDecoder : public TokenDecoder {
 public:
  std::string decode(const std::vector<std::string>& tokens) const override {
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) text += (i == 0 ? "" : " ") + tokens[i];
    return text;
  }
};

class RefusingDecoder : public TokenDecoder {
 public:
  explicit RefusingDecoder(std::string message) : message_(std::move(message)) {}

  std::string decode(const std::vector<std::string>& /*tokens*/) const override {
    fail("{}", message_);
  }

 private:
  std::string message_;
};

}  // namespace

TokenDecoderPointer word_piece_decoder(std::string prefix, bool clean_up) {
  return std::make_shared<WordPieceDecoder>(std::move(prefix), clean_up);
}

TokenDecoderPointer byte_level_decoder() { return std::make_shared<ByteLevelDecoder>(); }

TokenDecoderPointer metaspace_decoder(std::string mark, bool drop_first) {
  return std::make_shared<MetaspaceDecoder>(std::move(mark), drop_first);
}

TokenDecoderPointer suffix_decoder(std::string suffix) {
  return std::make_shared<SuffixDecoder>(std::move(suffix));
}

TokenDecoderPointer spaces_decoder() { return std::make_shared<SpacesDecoder>(); }

TokenDecoderPointer refusing_decoder(std::string message) {
  return std::make_shared<RefusingDecoder>(std::move(message));
}

}  // namespace attend::internal
