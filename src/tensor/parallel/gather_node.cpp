#include "gather_node.hpp"

#include <utility>

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include "replicas.hpp"
#include "yoke/core/error.hpp"

namespace yoke::parallel {
namespace {

namespace autograd = torch::autograd;

/// Note [Backward of replicas]
/// The node runs where autograd runs nodes of the output device: on a card, in that card's only
/// autograd thread. A backward started from another thread would wait for this thread to take its
/// work, so the replica of this card runs here, nested, and the others on their own threads, whose
/// cards have autograd threads of their own.
struct GatherNode final : autograd::Node {
  std::shared_ptr<ReplicaSet::State> set;
  std::vector<std::int64_t> rows;
  std::vector<std::vector<at::Tensor>> outputs;  // [replica][result], with the replicas' graphs
  std::vector<ScatteredInput> inputs;
  std::mutex mutex;

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    const std::lock_guard lock(mutex);
    if (at::GradMode::is_enabled()) {
      throw Error(Code::unsupported, "DataParallel: backward: create_graph is not supported",
                  "use DistributedDataParallel for losses with gradients of gradients");
    }
    if (outputs.empty()) {
      throw Error(Code::invalid_argument,
                  "DataParallel: backward: the graph was freed by an earlier backward",
                  "give retain_graph = true to the first");
    }
    const bool keep = autograd::get_current_graph_task_keep_graph();
    std::vector<autograd::variable_list> shares(rows.size(),
                                                autograd::variable_list(gradients.size()));
    for (std::size_t j = 0; j < gradients.size(); ++j) {
      if (gradients[j].defined()) deal_gradient(j, gradients[j], shares);
    }
    set->run(rows.size(), set->output_replica,
             [&](std::size_t i) { backward_of(i, shares[i], keep); });
    set->collect_gradients(rows.size());
    autograd::variable_list back;
    for (ScatteredInput& input : inputs) back.push_back(collect_input(input));
    back.resize(num_outputs());
    if (!keep) outputs.clear();
    return back;
  }

 private:
  void deal_gradient(std::size_t j, const at::Tensor& gradient,
                     std::vector<autograd::variable_list>& shares) const {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const at::Tensor& output = outputs[i][j];
      if (output.dim() == 0) {
        shares[i][j] = (gradient * share_of(rows, i)).to(output.device());
      } else {
        shares[i][j] = gradient.narrow(0, begin, output.size(0)).to(output.device());
        begin += output.size(0);
      }
    }
  }

  void backward_of(std::size_t replica, const autograd::variable_list& shares, bool keep) {
    autograd::variable_list roots;
    autograd::variable_list weights;
    for (std::size_t j = 0; j < shares.size(); ++j) {
      if (!shares[j].defined() || !outputs[replica][j].requires_grad()) continue;
      roots.push_back(outputs[replica][j]);
      weights.push_back(shares[j]);
    }
    if (!roots.empty()) autograd::backward(roots, weights, keep);
  }

  static at::Tensor collect_input(ScatteredInput& input) {
    std::vector<at::Tensor> parts;
    for (at::Tensor& piece : input.pieces) {
      at::Tensor& gradient = piece.mutable_grad();
      parts.push_back(
          (gradient.defined() ? gradient : at::zeros_like(piece)).to(input.original.device()));
      gradient = at::Tensor();
    }
    return at::cat(parts);
  }
};

}  // namespace

void join_graphs(const std::shared_ptr<ReplicaSet::State>& set, std::vector<at::Tensor>& results,
                 const std::vector<std::size_t>& differentiable,
                 std::vector<std::vector<at::Tensor>> outputs,
                 const std::vector<std::int64_t>& rows, std::vector<ScatteredInput> inputs) {
  const std::shared_ptr<GatherNode> node(new GatherNode(), autograd::deleteNode);
  node->set = set;
  node->rows = rows;
  node->inputs = std::move(inputs);
  for (const std::vector<at::Tensor>& output : outputs) {
    std::vector<at::Tensor> kept;
    for (const std::size_t j : differentiable) kept.push_back(output[j]);
    node->outputs.push_back(std::move(kept));
  }
  autograd::edge_list edges;
  for (const ScatteredInput& input : node->inputs)
    edges.push_back(autograd::impl::gradient_edge(input.original));
  // Without an input that wants a gradient the results still need a history: a leaf that nobody
  // sees.
  if (edges.empty())
    edges.push_back(autograd::impl::gradient_edge(at::zeros({0}).set_requires_grad(true)));
  node->set_next_edges(std::move(edges));
  for (const std::size_t j : differentiable) autograd::set_history(results[j], node);
}

}  // namespace yoke::parallel
