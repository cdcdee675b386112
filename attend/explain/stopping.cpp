#include <utility>

#include "attend/base/error.h"
#include "attend/explain/stopping-inl.h"

namespace attend {
namespace {

thread_local const std::function<bool()>* asked = nullptr;

bool is_stopped(const std::function<bool()>* function) {
  return function != nullptr && *function && (*function)();
}

class StoppableAnswer : public Sink {
 public:
  bool cancelled(size_t /*number*/) override { return is_stopped(function_); }
  void done(size_t /*number*/, Answer given) override { answer = std::move(given); }

  Answer answer;

 private:
  const std::function<bool()>* function_ = asked;  // computing threads have no guard
};

}  // namespace

StopGuard::StopGuard(const std::function<bool()>& is_stopped)
    : outer_(std::exchange(asked, &is_stopped)) {}

StopGuard::~StopGuard() { asked = outer_; }

void check_stopped() {
  if (is_stopped(asked)) fail("the explanation was cancelled");
}

Answer answer_unless_stopped(const Model& model, const std::string& source,
                             const SearchOptions& search) {
  StoppableAnswer sink;
  model.answer_each(requests_of({source}, search, &sink));
  check_stopped();
  return std::move(sink.answer);
}

}  // namespace attend
