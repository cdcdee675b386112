#include "attend/models/frame_neighbours.h"

#include <gtest/gtest.h>

#include "attend/data/source_kind.h"
#include "attend/models/classifier.h"
#include "attend/models/pair_model.h"
#include "tests/ops/misuse.h"

namespace attend {
namespace frame_neighbours_test {

using at::Tensor;

Tensor numbers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

TEST(FrameNeighbours, AreListedAndCutByLength) {
  // Frames of one number with up to two neighbours: edges of kind 3 (0 and 2) and kind 2 (0 and 1).
  Tensor frames = at::tensor({9., 2., 1., 3., 2.,   //
                              9., -1., 0., 2., 0.,  //
                              9., 0., -2., 0., 3.})
                      .view({1, 3, 5})
                      .expand({2, 3, 5});
  const Neighbours found = frame_neighbours(frames, numbers({3, 2}), 2);
  const EdgeTensors* lists = edge_tensors(found.scope);
  ASSERT_NE(lists, nullptr);
  EXPECT_TRUE(at::equal(lists->offsets, numbers({0, 3, 5, 7, 7, 9, 11, 11}).view({2, 1, 4})));
  EXPECT_TRUE(at::equal(lists->keys, numbers({0, 1, 2, 0, 1, 0, 2, 0, 1, 0, 1})));
  EXPECT_TRUE(at::equal(found.kinds, numbers({0, 2, 3, 2, 0, 3, 0,  //
                                              0, 2, 2, 0, 0, 0, 0})
                                         .view({2, 7})));
}

// A `classifier` network for molecules, single and in batches.
class MoleculeNetwork : public testing::Test {
 protected:
  void SetUp() override {
    model.config.type = "classifier";
    model.text.source_units = "molecule";
    model.text.target = TargetKind::number;
    const Settings all = model.config.settings();
    for (const char* setting : {"model.layers=2", "model.bias=none", "model.depth=12",
                                "model.heads=2", "model.feed_forward=9", "model.pooling=sum"})
      assign(all, setting);
    torch::manual_seed(4);
    network = model.make_network();
    network->to(torch::kDouble);
    network->eval();
  }

  Tensor answers(const std::vector<std::string>& sources) {
    std::vector<EncodedPair> pairs;
    std::vector<int64_t> all;
    for (const std::string& source : sources) {
      all.push_back(std::ssize(pairs));
      EncodedPair& pair = pairs.emplace_back();
      pair.target = {0};
      pair.no_eos = true;
      pair.number = 0.0;
      pair.frames = model.frame_reader()->read(source);
    }
    Batch batch = make_batch(pairs, all);
    batch.source = batch.source.to(at::kDouble);
    return network->log_probabilities(batch, {}).flatten();
  }

  PairModel model;
  std::shared_ptr<PairNetwork> network;
};

TEST_F(MoleculeNetwork, AnswersThatPaddingAndOrderDoNotChange) {
  const Tensor all = answers({"CC(=O)Nc1ccccc1", "C", "OCC", "[Na+].[Cl-]"});
  const std::vector<std::string> others = {"c1ccc(NC(C)=O)cc1", "C", "C(O)C", "[Cl-].[Na+]"};
  for (size_t i = 0; i < others.size(); ++i)
    EXPECT_NEAR(answers({others[i]}).item<double>(), all[static_cast<int64_t>(i)].item<double>(),
                1e-12)
        << others[i];
}

TEST_F(MoleculeNetwork, AnswersByBonds) {
  // The atoms are alike: equal counts of each element, with equal bonds and hydrogens.
  const Tensor both = answers({"CCONC", "CNCOC"});
  EXPECT_GT((both[0] - both[1]).abs().item<double>(), 1e-4);
}

TEST_F(MoleculeNetwork, RefusesWhatReadsNoBonds) {
  const auto refused = [&](const std::string& setting) {
    return [this, setting] {
      PairModel other = model;
      other.config = {};
      other.config.type = setting.substr(0, setting.find(' '));
      const std::string more = setting.substr(other.config.type.size());
      if (!more.empty()) assign(other.config.settings(), more.substr(1));
      other.text.target = TargetKind::text;
      other.make_network();
    };
  };
  expect_errors({{refused("seq2seq"), "does not read bonds; take transformer, classifier or set"},
                 {refused("tagger"), "not images, sounds, sets or molecules"},
                 {refused("classifier model.layers=1"), "(as model.bias = none)"},
                 {refused("set"), "(as model.inducing_points = 0)"},
                 {refused("vit"), "its token has no bonds; take mean, sum or multi_head"}});
}

}  // namespace frame_neighbours_test
}  // namespace attend
