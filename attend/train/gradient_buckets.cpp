#include "attend/train/gradient_buckets.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <iterator>
#include <utility>

namespace attend {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

class CallAfter : public torch::autograd::FunctionPostHook {
 public:
  explicit CallAfter(std::function<void()> call) : call_(std::move(call)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

GradientBuckets::GradientBuckets(Communicator& world, const std::vector<ModulePtr>& replicas,
                                 std::vector<Tensor> gradients, int64_t bucket_size)
    : world_(world), gradients_(std::move(gradients)), is_last_(replicas.size()) {
  std::vector<std::vector<Tensor>> parameters;
  parameters.reserve(replicas.size());
  for (const ModulePtr& replica : replicas) parameters.push_back(replica->parameters());
  int64_t end = gradients_[0].numel();
  for (size_t p = parameters[0].size(); p-- > 0;) {
    if (buckets_.empty() || buckets_.back().size >= bucket_size) buckets_.push_back({end, 0});
    Bucket& bucket = buckets_.back();
    const int64_t size = parameters[0][p].numel();
    end -= size;
    bucket.begin = end;
    bucket.size += size;
    for (size_t r = 0; r < replicas.size(); ++r) {
      if (!parameters[r][p].requires_grad()) continue;
      ++bucket.parameters;
      watch(parameters[r][p], buckets_.size() - 1, r);
    }
  }
  expect_all();
}

GradientBuckets::~GradientBuckets() {
  for (const Watched& each : watched_) each.node->del_post_hook(each.hook);
}

void GradientBuckets::watch(const Tensor& parameter, size_t bucket, size_t replica) {
  auto node = torch::autograd::impl::grad_accumulator(parameter);
  const uintptr_t hook = node->add_post_hook(std::make_unique<CallAfter>([this, bucket, replica] {
    if (is_last_[replica]) make_final(buckets_[bucket]);
  }));
  // The parameter does not keep its node alive.
  watched_.push_back({std::move(node), hook});
}

void GradientBuckets::expect_all() {
  begun_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.parameters;
    bucket.is_added = false;
    bucket.wait = {};
  }
  is_last_.assign(is_last_.size(), false);
}

void GradientBuckets::begin_last_backward(int64_t replica) {
  is_last_[static_cast<size_t>(replica)] = true;
}

void GradientBuckets::make_final(Bucket& bucket) {
  {
    const std::lock_guard lock(mutex_);
    if (--bucket.missing > 0) return;
  }
  add_replicas(bucket);
}

void GradientBuckets::add_replicas(Bucket& bucket) {
  const torch::NoGradGuard no_gradient;
  const auto part = [&](const Tensor& vector) {
    return vector.narrow(0, bucket.begin, bucket.size);
  };
  Tensor sum = part(gradients_[0]);
  for (size_t r = 1; r < gradients_.size(); ++r) sum.add_(part(gradients_[r]));
  const std::lock_guard lock(mutex_);
  bucket.is_added = true;
  while (begun_ < buckets_.size() && buckets_[begun_].is_added) {
    Bucket& next = buckets_[begun_++];
    Tensor sent = gradients_[0].narrow(0, next.begin, next.size);
    next.wait = world_.begin_sum(sent);
  }
}

void GradientBuckets::sum(WorkerThreads& threads) {
  std::vector<Bucket*> rest;
  for (Bucket& bucket : buckets_)
    if (!bucket.is_added) rest.push_back(&bucket);
  threads.run(std::ssize(rest), [&](int64_t i) { add_replicas(*rest[static_cast<size_t>(i)]); });
  for (const Bucket& bucket : buckets_) bucket.wait();
  expect_all();
}

}  // namespace attend
