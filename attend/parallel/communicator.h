#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace attend {

// The processes that compute one thing together: that train one model, or attend over one sequence.
// All must make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;  // from 0
  virtual int64_t size() const = 0;
  // How many are known to share the memory of this one's machine, itself included.
  virtual int64_t processes_here() const { return 1; }

  // Begins to add up the tensors of all, which have one shape and type, contiguous and on the CPU.
  // The call that it returns waits for the sum, of which every process gets the same bits; until
  // then the tensor may not change. Sums may be waited for in any order, or never.
  virtual std::function<void()> begin_sum(at::Tensor& tensor) = 0;
  void sum(at::Tensor& tensor) { begin_sum(tensor)(); }

  // Gives every process what rank 0 has.
  virtual void broadcast(at::Tensor& tensor) = 0;

  // Begins to send one tensor to the next rank, where rank 0 follows the last one, and to receive
  // another, of the shape and type that the rank before sends, contiguous and on the CPU. The call
  // that it returns waits for both; until then neither may change. Empty tensors are not sent.
  virtual std::function<void()> exchange(const at::Tensor& outgoing, at::Tensor& incoming) = 0;

  // Returns once all processes have called it.
  virtual void barrier() = 0;

  bool leads() const { return rank() == 0; }
};

// Numbers summed over all processes; the number or the text that rank 0 has.
std::vector<double> sum(Communicator& world, std::vector<double> numbers);
double sum(Communicator& world, double number);
double broadcast_number(Communicator& world, double number);
std::string broadcast_text(Communicator& world, std::string text);

// The texts of all processes, by rank.
std::vector<std::string> of_all(Communicator& world, const std::string& text);

// Whether the number is the same in all processes.
bool all_alike(Communicator& world, uint64_t number);

// Error, naming the first line that differs, where a process has another text than rank 0; `what`
// names the texts in the message. The other processes then fail, too.
void check_alike(Communicator& world, const std::string& text, const std::string& what);

// One process by itself.
std::unique_ptr<Communicator> single_process();

}  // namespace attend
