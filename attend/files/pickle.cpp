#include "attend/files/pickle.h"

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "attend/base/error.h"

namespace attend {
namespace {

using Json = nlohmann::json;

constexpr int maximum_pickle_depth = 64;
constexpr size_t maximum_pickle_values = 1'000'000;

// A value that instructions may still change. Several others, and the value itself, may hold it.
struct Value {
  enum class Kind { plain, list, members, mark };
  Kind kind = Kind::plain;
  Json plain = {};
  std::vector<Value*> entries = {};  // members: key and value in turns
};

// Instructions of Python's pickletools, with the numbers of its documentation.
enum class Code : unsigned char {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  float64 = 'G',
  int32 = 'J',
  uint8 = 'K',
  uint16 = 'M',
  none = 'N',
  reduce = 'R',
  text32 = 'X',
  global = 'c',
  append = 'a',
  build = 'b',
  dictionary = 'd',
  empty_dictionary = '}',
  appends = 'e',
  get8 = 'h',
  get32 = 'j',
  list = 'l',
  empty_list = ']',
  put8 = 'q',
  put32 = 'r',
  set_item = 's',
  tuple = 't',
  empty_tuple = ')',
  set_items = 'u',
  protocol = 0x80,
  make_object = 0x81,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  yes = 0x88,
  no = 0x89,
  long8 = 0x8a,
  text8 = 0x8c,
  make_object_with_names = 0x92,
  stack_global = 0x93,
  memoise = 0x94,
  frame = 0x95,
};

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Json read() {
    while (true) {
      const auto code = static_cast<Code>(static_cast<unsigned char>(take(1)[0]));
      if (code == Code::stop) break;
      if (!read_plain(code) && !read_container(code) && !read_object(code) && !read_memory(code))
        fail("{}: uses the instruction 0x{:02x} at byte {}, which is not read", name_,
             static_cast<unsigned>(code), at_ - 1);
    }
    Value* result = pop();
    return json_of(*result, 0);
  }

 private:
  std::string_view take(size_t size) {
    if (size > bytes_.size() - at_) fail("{}: is cut off after {} bytes", name_, bytes_.size());
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  uint64_t number(size_t size) {
    uint64_t value = 0;
    const std::string_view digits = take(size);
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    return value;
  }

  Value* pop() {
    if (stack_.empty() || stack_.back()->kind == Value::Kind::mark)
      fail("{}: is damaged: an instruction at byte {} lacks a value", name_, at_);
    Value* top = stack_.back();
    stack_.pop_back();
    return top;
  }

  // The values above the last mark, which is removed.
  std::vector<Value*> pop_to_mark() {
    size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1]->kind != Value::Kind::mark) --begin;
    if (begin == 0) fail("{}: is damaged: no mark before byte {}", name_, at_);
    std::vector<Value*> above(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return above;
  }

  void push_made(Value::Kind kind) {
    if (all_.size() > maximum_pickle_values)
      fail("{}: holds over {} values", name_, maximum_pickle_values);
    stack_.push_back(&all_.emplace_back(Value{.kind = kind}));
  }

  void push_plain(Json json) {
    push_made(Value::Kind::plain);
    stack_.back()->plain = std::move(json);
  }

  Value& top_of_kind(Value::Kind kind) {
    if (stack_.empty() || stack_.back()->kind != kind)
      fail("{}: is damaged: values before byte {} do not fit", name_, at_);
    return *stack_.back();
  }

  void push_list(std::vector<Value*> entries) {
    push_made(Value::Kind::list);
    stack_.back()->entries = std::move(entries);
  }

  // By value: an object may be given its own entries.
  void add_entries(Value& to, std::vector<Value*> entries) {
    entries_ += entries.size();
    if (entries_ > maximum_pickle_values)
      fail("{}: holds over {} values", name_, maximum_pickle_values);
    if (to.kind == Value::Kind::members && entries.size() % 2 != 0)
      fail("{}: is damaged: a key before byte {} has no value", name_, at_);
    to.entries.insert(to.entries.end(), entries.begin(), entries.end());
  }

  bool read_plain(Code code) {
    switch (code) {
      case Code::none:
        push_plain(nullptr);
        return true;
      case Code::yes:
      case Code::no:
        push_plain(code == Code::yes);
        return true;
      case Code::uint8:
      case Code::uint16:
        push_plain(number(code == Code::uint8 ? 1 : 2));
        return true;
      case Code::int32:
        push_plain(static_cast<int32_t>(number(4)));
        return true;
      case Code::long8:
        push_plain(long_number());
        return true;
      case Code::float64:
        push_plain(real_number());
        return true;
      case Code::text8:
      case Code::text32:
        push_plain(std::string(take(number(code == Code::text8 ? 1 : 4))));
        return true;
      default:
        return false;
    }
  }

  // Two's complement of 0 to 8 bytes.
  int64_t long_number() {
    const auto size = static_cast<size_t>(number(1));
    if (size > 8) fail("{}: has a whole number of {} bytes; at most 8 are read", name_, size);
    if (size == 0) return 0;
    const auto shift = static_cast<int>(64 - 8 * size);
    return static_cast<int64_t>(number(size) << shift) >> shift;
  }

  // Eight bytes, the highest first.
  double real_number() {
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  bool read_container(Code code) {
    switch (code) {
      case Code::mark:
        push_made(Value::Kind::mark);
        return true;
      case Code::empty_list:
      case Code::empty_tuple:
        push_list({});
        return true;
      case Code::list:
      case Code::tuple:
        push_list(pop_to_mark());
        return true;
      case Code::tuple1:
      case Code::tuple2:
      case Code::tuple3: {
        std::vector<Value*> entries(code == Code::tuple1 ? 1 : code == Code::tuple2 ? 2 : 3);
        for (size_t i = entries.size(); i-- > 0;) entries[i] = pop();
        push_list(std::move(entries));
        return true;
      }
      case Code::empty_dictionary:
        push_made(Value::Kind::members);
        return true;
      case Code::dictionary: {
        const std::vector<Value*> entries = pop_to_mark();
        push_made(Value::Kind::members);
        add_entries(*stack_.back(), entries);
        return true;
      }
      case Code::append: {
        Value* entry = pop();
        add_entries(top_of_kind(Value::Kind::list), {entry});
        return true;
      }
      case Code::appends: {
        const std::vector<Value*> entries = pop_to_mark();
        add_entries(top_of_kind(Value::Kind::list), entries);
        return true;
      }
      case Code::set_item: {
        Value* value = pop();
        Value* key = pop();
        add_entries(top_of_kind(Value::Kind::members), {key, value});
        return true;
      }
      case Code::set_items: {
        const std::vector<Value*> entries = pop_to_mark();
        add_entries(top_of_kind(Value::Kind::members), entries);
        return true;
      }
      default:
        return false;
    }
  }

  // A class is pushed as a plain value, which nothing reads.
  bool read_object(Code code) {
    switch (code) {
      case Code::global:
        skip_line();
        skip_line();
        push_plain(nullptr);
        return true;
      case Code::stack_global:
        pop();
        pop();
        push_plain(nullptr);
        return true;
      case Code::make_object_with_names:
        pop();
        [[fallthrough]];
      case Code::make_object:
      case Code::reduce:
        pop();  // arguments
        pop();  // class or function
        push_made(Value::Kind::members);
        return true;
      case Code::build: {
        const Value* state = pop();
        Value& object = top_of_kind(Value::Kind::members);
        if (state->kind == Value::Kind::members) add_entries(object, state->entries);
        return true;
      }
      default:
        return false;
    }
  }

  void skip_line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("{}: is cut off within a name", name_);
    at_ = end + 1;
  }

  bool read_memory(Code code) {
    switch (code) {
      case Code::protocol:
        take(1);
        return true;
      case Code::frame:
        take(8);
        return true;
      case Code::pop:
        pop();
        return true;
      case Code::pop_mark:
        pop_to_mark();
        return true;
      case Code::memoise:
        keep(memory_.size());
        return true;
      case Code::put8:
      case Code::put32:
        keep(number(code == Code::put8 ? 1 : 4));
        return true;
      case Code::get8:
      case Code::get32: {
        const uint64_t place = number(code == Code::get8 ? 1 : 4);
        if (place >= memory_.size() || memory_[place] == nullptr)
          fail("{}: is damaged: it reads value {} before it is there", name_, place);
        stack_.push_back(memory_[place]);
        return true;
      }
      default:
        return false;
    }
  }

  void keep(uint64_t place) {
    if (stack_.empty() || stack_.back()->kind == Value::Kind::mark || place > maximum_pickle_values)
      fail("{}: is damaged: nothing to keep at byte {}", name_, at_);
    if (place >= memory_.size()) memory_.resize(place + 1);
    memory_[place] = stack_.back();
  }

  Json json_of(const Value& value, int depth) {
    if (depth > maximum_pickle_depth)
      fail("{}: is nested over {} levels deep, or refers to itself", name_, maximum_pickle_depth);
    values_ += 1 + (value.plain.is_string() ? value.plain.get_ref<const std::string&>().size() : 0);
    if (values_ > maximum_pickle_values)
      fail("{}: holds over {} values", name_, maximum_pickle_values);
    if (value.kind == Value::Kind::plain) return value.plain;
    if (value.kind == Value::Kind::list) {
      Json list = Json::array();
      for (const Value* entry : value.entries) list.push_back(json_of(*entry, depth + 1));
      return list;
    }
    Json members = Json::object();
    for (size_t i = 0; i + 1 < value.entries.size(); i += 2) {
      const Value& key = *value.entries[i];
      const bool is_text = key.kind == Value::Kind::plain && key.plain.is_string();
      if (!is_text && (key.kind != Value::Kind::plain || !key.plain.is_number_integer()))
        fail("{}: has a key that is neither a text nor a whole number", name_);
      members[is_text ? key.plain.get<std::string>() : key.plain.dump()] =
          json_of(*value.entries[i + 1], depth + 1);
    }
    return members;
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0, entries_ = 0, values_ = 0;
  std::deque<Value> all_;
  std::vector<Value*> stack_, memory_;
};

}  // namespace

nlohmann::json parse_pickle(std::string_view bytes, const std::string& name) {
  return PickleReader(bytes, name).read();
}

}  // namespace attend
