#pragma once

// The stable interface (docs/versioning.md). Only these headers and the ones that they include are
// installed.
//
//   attend::train_model({.data = "pairs.tsv", .out = "model"});
//   const attend::Model model("model");
//   const std::string answer = model.answer({"attention"})[0].best().text;
//
// This includes LibTorch's headers. Programs that only answer compile faster with
// attend/inference/model.h, programs with arrays instead of tensors with
// attend/kernels/attention.h.

#include "attend/inference/model.h"
#include "attend/kernels/attention.h"
#include "attend/models/model_type.h"
#include "attend/models/new_pair_model.h"
#include "attend/models/pair_network.h"
#include "attend/nn/graph_attention.h"
#include "attend/nn/learned_attention.h"
#include "attend/nn/mechanism_table.h"
#include "attend/nn/multi_head_attention.h"
#include "attend/nn/recurrent.h"
#include "attend/nn/step_attention.h"
#include "attend/nn/transformer_stack.h"
#include "attend/ops/attention.h"
#include "attend/ops/causal_convolution.h"
#include "attend/ops/graph.h"
#include "attend/ops/recurrence.h"
#include "attend/parallel/distributed_attention.h"
#include "attend/parallel/process_world.h"
#include "attend/runs/training.h"
