#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attend/base/enum_names.h"
#include "attend/nn/linear.h"
#include "attend/nn/recurrent.h"

namespace attend {

// A recurrent cell, or a feed-forward layer with tanh.
enum class Controller { gru, lstm, feed_forward };
inline EnumNames names_of(Controller) { return {"gru", "lstm", "feed_forward"}; }

// All sizes are 1 or more.
struct MemoryMachineConfig {
  int64_t inputs = 1;   // depth of the input of each step
  int64_t outputs = 1;  // depth of the output
  Controller controller = Controller::lstm;
  int64_t hidden = 100;  // depth of the controller
  int64_t rows = 128;    // rows of the memory
  int64_t width = 20;    // depth of a row
  int64_t read_heads = 1;
  int64_t write_heads = 1;
  int64_t farthest_shift = 1;  // maximum number of rows that a head moves per step; 0 or more
};

// State of a memory machine between two steps.
struct MemoryMachineState {
  at::Tensor memory;                   // [B, rows, width]
  at::Tensor weights;                  // [B, read heads then write heads, rows]
  at::Tensor reads;                    // [B, read heads, width]: last rows read
  std::vector<at::Tensor> controller;  // empty for a feed-forward controller
};

// The neural Turing machine (Graves et al. 2014). At each step a controller sees the input and the
// rows read before. Its heads address the memory by content and by shifts from their last rows
// (memory_addressing.h). The write heads erase and add, then the read heads read the memory. The
// output is a linear layer on the controller state and the rows read.
//
// The memory starts at a small constant (Collier and Beel 2018), every head at row 0.
class MemoryMachine : public torch::nn::Module {
 public:
  // Error on a size out of range.
  explicit MemoryMachine(const MemoryMachineConfig& config);

  MemoryMachineState start(int64_t batch) const;

  // input [B, inputs] -> output [B, outputs], without an activation, and the next state.
  std::pair<at::Tensor, MemoryMachineState> step(const at::Tensor& input,
                                                 const MemoryMachineState& state,
                                                 const Pass& pass = {});

  // Runs whole sequences: [B, T, inputs] -> [B, T, outputs].
  at::Tensor forward(const at::Tensor& inputs, const Pass& pass = {});

 private:
  // Returns the input of the output layer, [B, hidden + read heads * width], and the next state.
  std::pair<at::Tensor, MemoryMachineState> advance(const at::Tensor& input,
                                                    const MemoryMachineState& state,
                                                    const Pass& pass);
  at::Tensor address(const at::Tensor& controls, const MemoryMachineState& state) const;

  MemoryMachineConfig config_;
  std::shared_ptr<RecurrentCell> recurrent_;  // null if the controller is feed-forward
  Linear feed_forward_{nullptr};
  Linear addressing_{nullptr};  // address controls of all heads
  Linear writing_{nullptr};     // erase and add vectors of the write heads
  Linear output_{nullptr};
  at::Tensor first_reads_;  // [read heads, width]
};

}  // namespace attend
