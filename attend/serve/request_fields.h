#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/base/error.h"
#include "attend/base/settings.h"
#include "attend/http/http_message.h"

namespace attend {

// Error of a request: a status 4xx or 5xx, the field, and a code for programs.
class RequestError : public Error {
 public:
  RequestError(int status, const std::string& message, std::string param = "",
               std::string code = "")
      : Error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string param_, code_;
};

// Formats an error for the clients of a route.
using ErrorForm = HttpResponse (*)(const RequestError& error);
// {"error": {"message", "type", "param", "code"}}; an empty param or code becomes null.
HttpResponse openai_error(const RequestError& error);
// The same with the message as `detail`, too, which Voyage's and Jina's clients read.
HttpResponse detailed_error(const RequestError& error);

// Response if the queue is full (429).
HttpResponse full_response(ErrorForm error = openai_error);

// Limits that keep a single request from computing for minutes: number of texts, answers per text,
// tokens per answer, and labels.
constexpr double max_texts = 32, max_answers = 64, max_answer_tokens = 4096;
constexpr double max_labels = 10000, max_dimensions = 1e6, max_token_id = 2147483647;
constexpr size_t max_text_bytes = 1 << 20;        // per text
constexpr double max_seed = 9223372036854775807;  // maximum of int64_t

// Forms of a request's inputs: "a", ["a", "b"], rows [["a"], ["b"]] of one text each, token
// ids, [5, 6] or [[5, 6], [7]], objects [{"text": "a"}, {"text": "b"}], or a question about a
// passage, {"question": "a", "context": "b"}, which becomes one text with a TAB between both.
enum class InputForm { text, texts, text_rows, ids, id_rows, text_objects, question };

struct RequestInputs {
  std::vector<InputForm> forms = {};  // accepted forms
  InputForm form = InputForm::text;   // form that was read
  std::vector<std::string> texts = {};
  std::vector<std::vector<int64_t>> ids = {};  // used for the forms with token ids
};

// One field of a request's JSON, bound to the variable that it sets.
struct RequestField {
  std::string name;
  std::variant<int64_t*, double*, bool*, std::string*, std::vector<std::string>*, RequestInputs*,
               NamedVariable, std::vector<RequestField>>  // the last: fields of a nested object
      value;
  double minimum = 0, maximum = 0;  // range of a number, or of the size of an array or inputs
  bool is_required = false;
  bool is_nullable = false;  // null: as if the field were absent
  // Whether the variable's initial value has the same effect as an absent field. If not, the schema
  // has no default, because generated clients send defaults.
  bool has_default = true;
  std::string help = {};  // description in the schema; empty: none
  EnumNames names = {};   // accepted strings of an array; empty: all
};

// Field for a setting. The maximum of requests may be lower.
RequestField request_field(const Setting& setting, double maximum, bool has_default);

// Fields of a request type, bound to an instance with its defaults; for documentation.
template <class Request>
std::vector<RequestField> fields_of() {
  static Request defaults;
  return defaults.fields();
}

// Limits of a request's JSON: nesting depth and number of values, enough for the token ids of 2,048
// texts.
constexpr int json_depth = 8;
constexpr size_t json_values = 1000000;

// Reads a request body, a JSON object, into the variables. Returns the names of the fields that are
// present; "outer.inner" names a field of a nested object. A number without a fraction, such
// as 6.0, is a whole number, as in JSON Schema. RequestError (400) on invalid JSON. RequestError
// (422) on an unknown field (with the nearest name), a duplicate, missing or out-of-range field, a
// wrong type, and JSON beyond the limits.
std::set<std::string> read_request(std::string_view body, const std::vector<RequestField>& fields);

// The source of two texts, with a TAB between them. Their own TABs become spaces, since a TAB
// separates texts.
std::string pair_source(const std::string& first, const std::string& second);

// RequestError (422) if several of these fields are present. They mean the same.
void check_synonyms(const std::set<std::string>& present, const std::vector<std::string>& names);

// Whether a body is a JSON object with the names of these fields, at all depths, and no others.
// Values are not checked further.
bool takes_names_of(std::string_view body, const std::vector<RequestField>& fields);

// JSON schema of the bodies that read_request() accepts.
nlohmann::json request_schema(const std::vector<RequestField>& fields);

}  // namespace attend
