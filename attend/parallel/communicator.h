#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace attend {

// Processes that compute together: they train one model, or attend over one sequence. All processes
// must make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;  // from 0
  virtual int64_t size() const = 0;
  // Number of processes known to share this machine's memory, including this one.
  virtual int64_t processes_here() const { return 1; }

  // Begins to sum the tensors of all processes. They must have the same shape and type, be
  // contiguous and on the CPU. The returned function waits for the sum, which is bit-identical in
  // every process. Until then the tensor must not change. Functions may be called in any order, or
  // never.
  virtual std::function<void()> begin_sum(at::Tensor& tensor) = 0;
  void sum(at::Tensor& tensor) { begin_sum(tensor)(); }

  // Copies the tensor of rank 0 to every process.
  virtual void broadcast(at::Tensor& tensor) = 0;

  // Begins to send a tensor to the next rank (after the last rank comes rank 0), and to receive a
  // tensor from the previous rank. Shape and type of `incoming` must match the previous rank's
  // tensor; both must be contiguous and on the CPU. The returned function waits for both transfers;
  // until then neither tensor may be changed. Empty tensors are not sent.
  virtual std::function<void()> exchange(const at::Tensor& outgoing, at::Tensor& incoming) = 0;

  // Returns once all processes have called it.
  virtual void barrier() = 0;

  bool leads() const { return rank() == 0; }
};

// sum: sums over all processes. broadcast_...: the number or text of rank 0.
std::vector<double> sum(Communicator& world, std::vector<double> numbers);
double sum(Communicator& world, double number);
double broadcast_number(Communicator& world, double number);
std::string broadcast_text(Communicator& world, std::string text);

// The texts of all processes, by rank.
std::vector<std::string> of_all(Communicator& world, const std::string& text);

// Whether the number is the same in all processes.
bool all_alike(Communicator& world, uint64_t number);

// Error, naming the first line that differs, if a process has another text than rank 0. `what`
// names the texts in the message. The other processes then fail too.
void check_alike(Communicator& world, const std::string& text, const std::string& what);

// A world of one process.
std::unique_ptr<Communicator> single_process();

}  // namespace attend
