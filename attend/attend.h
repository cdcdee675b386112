#pragma once

// All that docs/versioning.md keeps stable; other headers change with a minor version.
//
//   attend::train_model({.data = "pairs.tsv", .out = "model"});
//   const attend::Model model("model");
//   const std::string answer = model.answer({"attention"})[0].best().text;
//
// It takes LibTorch's headers in. Programs that answer alone compile faster with
// attend/inference/model.h, those with arrays and no tensors with attend/kernels/attention.h.

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
#include "attend/ops/graph.h"
#include "attend/runs/training.h"
