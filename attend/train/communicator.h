#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace at {
class Tensor;
}  // namespace at

namespace attend {

// The processes that train one model together. Each computes on its share of every batch and takes
// the same steps; rank 0 decides when to stop and what validation says, and alone writes files. All
// must make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;  // from 0
  virtual int64_t size() const = 0;

  // Adds up the tensors of all, which have one shape and type, contiguous and on the CPU. Every
  // process gets the same bits.
  virtual void sum(at::Tensor& tensor) = 0;

  // Gives every process what rank 0 has.
  virtual void broadcast(at::Tensor& tensor) = 0;

  // Returns once all have come here.
  virtual void barrier() = 0;

  bool leads() const { return rank() == 0; }
};

// A number summed over all processes, and that of the first.
double sum(Communicator& world, double number);
double of_first(Communicator& world, double number);

// Error, naming the first line that differs, where a process has another text than the first;
// `what` the texts are, for the message. The others then fail too.
void check_alike(Communicator& world, const std::string& text, const std::string& what);

// One process by itself.
std::unique_ptr<Communicator> alone();

}  // namespace attend
