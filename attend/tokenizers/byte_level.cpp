#include <algorithm>
#include <array>
#include <utility>

#include "attend/tokenizers/characters-inl.h"
#include "attend/tokenizers/splitter-inl.h"

namespace attend::internal {
namespace {

constexpr char32_t first_substitute = 0x100;
constexpr size_t substitutes = 68;  // bytes that are not printable Latin-1 characters

bool is_spelled_by_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

struct ByteSpellings {
  std::array<std::string, 256> spellings;
  std::array<int16_t, first_substitute + substitutes> bytes;

  ByteSpellings() {
    bytes.fill(-1);
    char32_t next = first_substitute;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t point = is_spelled_by_itself(byte) ? static_cast<char32_t>(byte) : next++;
      append_point(spellings[static_cast<size_t>(byte)], point);
      bytes[point] = static_cast<int16_t>(byte);
    }
  }
};

const ByteSpellings& byte_spellings() {
  static const ByteSpellings table;
  return table;
}

// The kind of run in GPT-2's expression that a character belongs to.
enum class Run : uint8_t { letters, numbers, space, others };

Run run_of(char32_t point) {
  const uint16_t classes = character_classes().classes(point);
  if (classes & letter) return Run::letters;
  if (classes & number) return Run::numbers;
  return classes & regex_space ? Run::space : Run::others;
}

// Finds the matches of GPT-2's expression one after another:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
class Gpt2Scanner {
 public:
  explicit Gpt2Scanner(std::string_view text) : text_(text) {}

  // Returns the next match; every character is in one.
  std::string_view next() {
    const size_t begin = position_;
    if (const size_t size = contraction(); size > 0) {
      position_ += size;
    } else {
      // A space belongs to the run after it.
      const bool space = text_[position_] == ' ' && position_ + 1 < text_.size() &&
                         run_at(position_ + 1) != Run::space;
      if (space) ++position_;
      const Run run = run_at(position_);
      const size_t last = pass(run);
      // A run of spaces leaves its last one to the next run, unless it is the only one.
      if (run == Run::space && position_ < text_.size() && last > begin) position_ = last;
    }
    return text_.substr(begin, position_ - begin);
  }

  bool ended() const { return position_ == text_.size(); }

 private:
  static Run ascii_run(char character) {
    static const auto runs = [] {
      std::array<Run, 128> table;
      for (char32_t point = 0; point < table.size(); ++point) table[point] = run_of(point);
      return table;
    }();
    return runs[static_cast<unsigned char>(character)];
  }

  Run run_at(size_t position) const {
    if (is_ascii(text_[position])) return ascii_run(text_[position]);
    return run_of(next_point(text_, position));
  }

  // Moves to the end of the run; returns the position of its last character.
  size_t pass(Run run) {
    size_t last = position_;
    while (position_ < text_.size() && run_at(position_) == run) {
      last = position_;
      position_ += character_size(text_[position_]);
    }
    return last;
  }

  size_t contraction() const {
    if (text_[position_] != '\'') return 0;
    constexpr std::array<std::string_view, 7> endings = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (const std::string_view ending : endings)
      if (text_.substr(position_ + 1).starts_with(ending)) return 1 + ending.size();
    return 0;
  }

  std::string_view text_;
  size_t position_ = 0;
};

class ByteLevelSplitter : public Splitter {
 public:
  ByteLevelSplitter(bool prefix_space, bool by_expression)
      : prefix_space_(prefix_space), by_expression_(by_expression) {}

  void split(std::string_view text, size_t front, const PieceSink& sink) const override {
    if (text.empty()) return;
    std::string prefixed;
    if (prefix_space_ && !text.starts_with(' ')) {
      prefixed = " ";
      prefixed += text;
      text = prefixed;
    }
    std::string spelled;
    const auto tell = [&](std::string_view piece) {
      spelled.clear();
      for (const char byte : piece) spelled += byte_spelling(static_cast<unsigned char>(byte));
      sink(spelled, front);
      front = 0;
    };
    if (!by_expression_) return tell(text);
    for (Gpt2Scanner scanner(text); !scanner.ended();) tell(scanner.next());
  }

  bool spells_bytes() const override { return true; }

 private:
  bool prefix_space_, by_expression_;
};

}  // namespace

const std::string& byte_spelling(unsigned char byte) { return byte_spellings().spellings[byte]; }

int byte_spelled_by(char32_t point) {
  const auto& bytes = byte_spellings().bytes;
  return point < bytes.size() ? bytes[point] : -1;
}

SplitterPointer byte_level_splitter(bool prefix_space, bool by_expression) {
  return std::make_shared<ByteLevelSplitter>(prefix_space, by_expression);
}

}  // namespace attend::internal
