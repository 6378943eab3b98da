#include "checks.hpp"
#include "meanings.hpp"
#include "yoke/core/text.hpp"

namespace yoke::doctor {
namespace {

using core::text;

void look_for_no_cuda(const Machine& machine, Meaning& meaning) {
  for (const KnownText& known : driver_texts()) {
    if (known.id == "no-driver") known.look(machine, meaning);
  }
}

void look_at_cards(const Machine& machine, Meaning& meaning) {
  std::vector<std::string> parts;
  for (const device::Card& card : machine.cards().all)
    parts.push_back(text(card.name, " with ", core::bytes_text(card.memory_bytes)));
  meaning.seen = core::joined(parts);
}

}  // namespace

std::vector<KnownText> program_texts() {
  return {
      {"cuda-not-available",
       {"is_available() & false", "is_available()=false", "torch not compiled with cuda enabled",
        "torch.cuda.is_available() is false", "no cuda gpus are available"},
       "torch finds no card that it can use",
       "see the fix below what was seen",
       look_for_no_cuda},
      {"two-devices",
       {"expected all tensors to be on the same device"},
       "the model is on one device and a tensor of the batch on another",
       "before the call: input = input.to(device), target = target.to(device)"},
      {"first-device",
       {"module must have its parameters and buffers on device"},
       "DataParallel needs the model on the first device of its list",
       "before wrapping: model.to(\"cuda:0\"), or device_ids that begin with the model's device"},
      {"module-prefix",
       {"error(s) in loading state_dict & module.", "missing key(s) & module.",
        "unexpected key(s) & module."},
       "the weights were saved from inside a wrapper, so that each name begins with module.",
       "save model.module.state_dict(), or load {k.removeprefix(\"module.\"): v for k, v in "
       "state.items()}; yoke writes names without it"},
      {"other-keys",
       {"missing key(s) in state_dict", "unexpected key(s) in state_dict"},
       "the weights are of another model",
       "build the model with the arguments with which it was saved"},
      {"cuda-out-of-memory",
       {"cuda out of memory", "cuda error: out of memory", "torch.outofmemoryerror"},
       "the batch and what backward keeps of it do not fit into the card's memory",
       "a smaller batch_size with accumulation (yoke train --batch-size auto finds it), mixed "
       "precision "
       "(--precision bf16), or nn::checkpoint around the largest blocks",
       look_at_cards},
      {"child-failed",
       {"childfailederror"},
       "torchrun says only that a rank failed; the cause is further up, in the first rank that "
       "failed",
       "read the first traceback, not the last; yoke launch prints it last"},
      {"address-in-use",
       {"eaddrinuse", "address already in use"},
       "another job, or a rank left over from the last one, has the port",
       "torchrun --standalone, another --master-port, or yoke launch, which takes a free one"},
      {"watchdog",
       {"watchdog caught collective operation timeout", "collective operation timeout"},
       "a rank did not come to a collective: it is slower, stuck, dead, or took another branch",
       "look at the rank that is not named: the others wait for it; every rank must make the same "
       "collective calls in the same order"},
      {"unfinished-reduction",
       {"expected to have finished reduction in the prior iteration"},
       "a parameter got no gradient in the last step: a layer that the loss does not reach",
       "find_unused_parameters=True in torch's wrapper, or use the layer; yoke's wrapper needs no "
       "flag"},
      {"nccl-system",
       {"unhandled system error", "unhandled cuda error & nccl"},
       "NCCL could not open what it needs: shared memory, a network interface, or a device",
       "run again with NCCL_DEBUG=WARN; in a container: --ipc=host"},
  };
}

}  // namespace yoke::doctor
