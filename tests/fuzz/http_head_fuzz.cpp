#include "attend/http/http_head.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attend;
  const std::string_view bytes = fuzz::text(data, size);
  const HttpRules rules{.hosts = {"localhost:8080"},
                        .names = {"attend.example"},
                        .open_paths = {"/health"},
                        .origins = {"https://friend.example"},
                        .body_bytes = 1000};
  const HttpHeadReading reading = read_http_head(bytes, rules, "10.0.0.1:8080");
  if (const auto* refusal = std::get_if<HttpRefusal>(&reading)) {
    fuzz::expect(refusal->status >= 400 && refusal->status < 600);
    fuzz::expect(!refusal->message.empty() && refusal->message.size() < 1000);
  }
  if (const auto* head = std::get_if<HttpHead>(&reading)) {
    fuzz::expect(head->size <= size && head->size <= http_head_bytes + 4);
    fuzz::expect(bytes.substr(0, head->size).ends_with("\r\n\r\n"));
    fuzz::expect(head->path.starts_with('/') && head->target.starts_with(head->path));
    for (const char c : head->target) fuzz::expect(c > ' ' && c <= '~');
    fuzz::expect(head->content_length >= 0 && head->content_length <= rules.body_bytes);
    fuzz::expect(!head->has_chunks || (head->content_length == 0 && head->takes_chunks));
    fuzz::expect(head->origin.empty() || head->origin == rules.origins[0]);
    for (const char c : head->asked_fields) fuzz::expect(c >= ' ' && c <= '~');
    // Bytes after the head do not change the result.
    const HttpHeadReading alone =
        read_http_head(bytes.substr(0, head->size), rules, "10.0.0.1:8080");
    const auto* same = std::get_if<HttpHead>(&alone);
    fuzz::expect(same != nullptr && same->target == head->target && same->size == head->size &&
                 same->content_length == head->content_length);
  }
  return 0;
}
