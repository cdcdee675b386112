// One file of a folder saved by transformers; the other files are valid. The first byte, a digit,
// selects the file; 0 is config.json.
#include <array>
#include <filesystem>
#include <string>

#include "attend/files/safetensors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/import/foreign_readers.h"
#include "tests/support/files.h"
#include "tests/tokenizers/model_writer.h"

namespace attend::fuzz {
namespace {

struct ForeignFile {
  const char* name;
  void (*read)(const std::string& folder);
  std::string usual = {};  // content while other files are tested; empty: no file
};

std::string usual_pieces() {
  return test::ModelWriter().piece("<unk>", 0, 2).piece("a", -1).text();
}

const std::array<ForeignFile, 12> files = {{
    {"modules.json", read_sentences,
     R"([{"path": "", "type": "Transformer"}, {"path": "1_Pooling", "type": "Pooling"}])"},
    {"1_Pooling/config.json", read_sentences, R"({"pooling_mode": "mean"})"},
    {"sentence_bert_config.json", read_sentences},
    {"tokenizer_config.json", read_tokenizers},
    {"preprocessor_config.json", read_images},
    {"model.safetensors.index.json", read_tensors},
    {"source.spm", read_sides, usual_pieces()},
    {"vocab.json", read_sides, R"({"</s>": 0, "<unk>": 1, "a": 2, "<pad>": 3})"},
    {"pairs/vocab.json", read_byte_pairs, R"({"</s>": 0, "<unk>": 1, "a": 2, "<pad>": 3})"},
    {"pairs/merges.txt", read_byte_pairs, "#version: 0.2\n"},
    {"pairs/tokenizer_config.json", read_byte_pairs},
    {"pairs/added_tokens.json", read_byte_pairs},
}};

// Files of a valid folder; each is restored after its test.
class Folder {
 public:
  Folder() {
    for (const char* name : {"1_Pooling", "pairs"})
      std::filesystem::create_directory(folder_ / name);
    folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
    folder_.write("target.spm", usual_pieces());
    write_safetensors(folder_ / "one.safetensors", {{{"x", at::zeros({2})}}, {}});
    for (const ForeignFile& file : files) put_back(file);
  }

  void read(const ForeignFile& file, std::string_view bytes) {
    folder_.write(file.name, bytes);
    accept_errors([&] { file.read(folder_.path()); }, folder_.path());
    put_back(file);
  }

 private:
  void put_back(const ForeignFile& file) {
    if (file.usual.empty())
      std::filesystem::remove(folder_ / file.name);
    else
      folder_.write(file.name, file.usual);
  }

  test::TemporaryFolder folder_;
};

}  // namespace
}  // namespace attend::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend::fuzz;
  if (size == 0) return 0;
  static Folder folder;
  const std::string_view bytes = text(data + 1, size - 1);
  const size_t which = static_cast<uint8_t>(data[0] - '0') % (files.size() + 1);
  if (which == 0)
    read_config(bytes);
  else
    folder.read(files[which - 1], bytes);
  return 0;
}
