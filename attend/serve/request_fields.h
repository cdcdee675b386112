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
#include "attend/http/http_message.h"

namespace attend {

// What is wrong with a request: a status of 4xx or 5xx, the field and a word for programs.
class RequestError : public Error {
 public:
  RequestError(int status, const std::string& message, std::string param = "",
               std::string code = "")
      : Error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& code() const { return code_; }
  HttpResponse response() const { return http_error(status_, what(), param_, code_); }

 private:
  int status_;
  std::string param_, code_;
};

// How a client's programs read an error.
using ErrorForm = HttpResponse (*)(const RequestError& error);
inline HttpResponse openai_error(const RequestError& error) { return error.response(); }

// What a client is told where too many requests wait.
HttpResponse full_response(ErrorForm error = openai_error);

// Strangers must not have one request compute for minutes: its texts, answers to each, their tokens
// and labels.
constexpr double most_texts = 32, most_answers = 64, most_answer_tokens = 4096;
constexpr double most_labels = 10000, most_dimensions = 1e6, most_token_id = 2147483647;
constexpr size_t most_text_bytes = 1 << 20;        // of one text
constexpr double most_seed = 9223372036854775807;  // that of int64_t

// How a request may write its inputs: "a", ["a", "b"], [[..], [..]] of one text each, and in place
// of texts the ids of tokens, [5, 6] or [[5, 6], [7]].
enum class InputForm { text, texts, text_rows, ids, id_rows };

struct RequestInputs {
  std::vector<InputForm> forms = {};  // that are taken
  InputForm form = InputForm::text;   // that was there
  std::vector<std::string> texts = {};
  std::vector<std::vector<int64_t>> ids = {};  // in place of texts
};

// One field of a request's JSON, bound to the variable that it sets.
struct RequestField {
  std::string name;
  std::variant<int64_t*, double*, bool*, std::string*, std::vector<std::string>*, RequestInputs*,
               NamedVariable, std::vector<RequestField>>  // the last: of an object
      value;
  double minimum = 0, maximum = 0;  // of numbers; of arrays and inputs how many there are
  bool is_required = false;
  bool is_nullable = false;  // null is as if it were not there
  // Whether the variable's value means the same as leaving the field out. If not, a schema has no
  // default, since generated clients send defaults.
  bool has_default = true;
};

// The fields of a type of request, bound to one with its defaults: what it takes, for documents.
template <class Request>
std::vector<RequestField> fields_of() {
  static Request defaults;
  return defaults.fields();
}

// Limits of a request's JSON: how deep it is nested, and how many values it holds, such as the
// token ids of 2,048 texts.
constexpr int json_depth = 8;
constexpr size_t json_values = 1000000;

// Reads a request's body, one JSON object, into the variables; returns the names of the fields that
// were there. A number without a fraction, such as 6.0, is a whole number, as JSON Schema has it.
// RequestError on what is no JSON (400), and (422) on unknown fields, which names the nearest, on a
// field that is twice there, on one of another type or range, on one that is missing, and on JSON
// beyond the limits.
std::set<std::string> read_request(std::string_view body, const std::vector<RequestField>& fields);

// What read_request() takes, as a JSON schema.
nlohmann::json request_schema(const std::vector<RequestField>& fields);

}  // namespace attend
