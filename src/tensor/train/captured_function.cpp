#include "captured_function.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include "yoke/comm/group.hpp"
#include "yoke/comm/world.hpp"
#include "yoke/core/console.hpp"
#include "yoke/core/text.hpp"

#ifdef YOKE_CUDA
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#endif

namespace yoke::train {

using Tensors = CapturedFunction::Tensors;

#ifdef YOKE_CUDA

namespace {

std::string first_line(const std::exception& error) {
  const std::string words = error.what();
  return words.substr(0, words.find('\n'));
}

bool lie_alike(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].sizes() != b[i].sizes() || a[i].scalar_type() != b[i].scalar_type() ||
        a[i].strides() != b[i].strides()) {
      return false;
    }
  }
  return true;
}

// While it lives the current stream is `stream`, which goes on where the caller's stream stands;
// at its end the caller's waits for it.
class OnStream {
 public:
  explicit OnStream(c10::cuda::CUDAStream stream)
      : outer_(c10::cuda::getCurrentCUDAStream(stream.device_index())), guard_(stream) {
    order(outer_, stream);
  }
  ~OnStream() {
    try {
      order(guard_.current_stream(), outer_);
    } catch (const std::exception&) {
      return;  // the card is lost: the next call on it says so
    }
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  static void order(c10::cuda::CUDAStream first, c10::cuda::CUDAStream second) {
    at::cuda::CUDAEvent event;
    event.record(first);
    event.block(second);
  }

  c10::cuda::CUDAStream outer_;
  c10::cuda::CUDAStreamGuard guard_;
};

}  // namespace

struct CapturedFunction::State {
  struct Shape {
    Tensors slots;    // of the arguments
    Tensors results;  // in the graph's memory
    int calls = 0;
    std::unique_ptr<at::cuda::CUDAGraph> graph;
  };

  Function function;
  comm::World& world;
  CaptureOptions options;
  std::size_t replays = 0;
  std::string obstacle;
  std::vector<std::unique_ptr<Shape>> shapes{};
  std::optional<c10::cuda::CUDAStream> stream{};
  decltype(at::cuda::graph_pool_handle()) pool{};  // of all graphs: they run one after the other

  void prepare() {
    if (stream) return;
    stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, world.device().index());
    pool = at::cuda::graph_pool_handle();
    at::globalContext().setBenchmarkCuDNN(true);  // shapes are fixed: its search pays
  }

  Shape* shape_of(const Tensors& arguments) {
    for (const auto& shape : shapes) {
      if (lie_alike(shape->slots, arguments)) return shape.get();
    }
    if (shapes.size() == options.shapes) return nullptr;
    shapes.push_back(std::make_unique<Shape>());
    for (const at::Tensor& argument : arguments) {
      shapes.back()->slots.push_back(at::empty_strided(argument.sizes(), argument.strides(),
                                                       argument.options().device(world.device())));
    }
    return shapes.back().get();
  }

  // An error of this rank, or empty.
  std::string try_capture(Shape& shape) {
    // What eager steps have left in the allocator's hands is of no use to the graph's own pool.
    c10::cuda::getCurrentCUDAStream().synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    at::cuda::CUDAGraph& graph = *(shape.graph = std::make_unique<at::cuda::CUDAGraph>());
    try {
      // Other threads (the loader's) may go on with what capture forbids.
      graph.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    } catch (const std::exception& error) {
      return first_line(error);
    }
    std::string failure;
    try {
      shape.results = function(shape.slots);
    } catch (const std::exception& error) {
      failure = first_line(error);
    }
    try {
      graph.capture_end();
    } catch (const std::exception& error) {
      if (failure.empty()) failure = first_line(error);
      abandon_capture();
    }
    return failure;
  }

  // What capture_end() leaves undone where it throws: the allocator still waits for allocations of
  // the capture, and the generator believes that one is under way.
  void abandon_capture() const {
    const auto device = world.device().index();
    [[maybe_unused]] const auto ignored = cudaGetLastError();
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool);
    } catch (const std::exception&) {
      // it was ended
    }
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(device);
    const std::lock_guard lock(generator.mutex());
    generator.graphsafe_set_state(generator.clone());
  }

  // Collective.
  void capture(Shape& shape) {
    std::string failure = try_capture(shape);
    at::Tensor good = at::tensor({failure.empty() ? 1.0 : 0.0}, at::kDouble);
    world.host_group().all_reduce(good, comm::ReduceOp::minimum);
    if (good.item<double>() > 0) return;
    obstacle = failure.empty() ? "the capture failed on another rank" : failure;
    shape.results.clear();
    shape.graph.reset();
    if (!failure.empty() || world.is_main()) {
      core::say(
          core::Level::warning,
          core::text("rank ", world.rank(),
                     ": the step is not captured in a CUDA graph and runs as it is: ", obstacle));
    }
  }

  Tensors run(const Tensors& arguments) {
    if (!world.device().is_cuda() || !obstacle.empty()) return function(arguments);
    prepare();
    Shape* shape = shape_of(arguments);
    const OnStream on(*stream);
    if (shape == nullptr) return function(arguments);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      shape->slots[i].copy_(arguments[i], /*non_blocking=*/true);
    }
    if (!shape->graph && shape->calls++ >= options.warmup) capture(*shape);
    if (!shape->graph) return function(shape->slots);
    shape->graph->replay();
    ++replays;
    Tensors results;
    for (const at::Tensor& result : shape->results) results.push_back(result.detach().clone());
    return results;
  }
};

#else

struct CapturedFunction::State {
  Function function;
  comm::World& world;
  CaptureOptions options;
  std::size_t replays = 0;
  std::string obstacle;

  Tensors run(const Tensors& arguments) { return function(arguments); }
};

#endif

CapturedFunction::CapturedFunction(Function function, comm::World& world, CaptureOptions options)
    : state_(new State{
          .function = std::move(function), .world = world, .options = options, .obstacle = {}}) {}

CapturedFunction::~CapturedFunction() = default;

Tensors CapturedFunction::operator()(const Tensors& arguments) { return state_->run(arguments); }

std::size_t CapturedFunction::replays() const noexcept { return state_->replays; }
const std::string& CapturedFunction::obstacle() const noexcept { return state_->obstacle; }

}  // namespace yoke::train
