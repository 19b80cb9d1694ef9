#pragma once
#include <string_view>
#include <utility>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/handler.hpp"

namespace evictd::admission {

/// Says of a resize that it can never be: of a static pod, of CPUs or memory that a Guaranteed pod may have for itself,
/// or beyond what the node has for pods. It is asked about nothing else. (kubelet 1.36: podResizesAdmitHandler)
///
/// Unlike the kubelet it does not know which containers may swap: there a resize of their memory is infeasible.
class ResizeHandler final : public AdmissionHandler {
 public:
  explicit ResizeHandler(const AllocationSettings& settings)
      : static_cpus_(settings.cpu_policy == "static"), static_memory_(settings.memory_policy == "Static") {}

  [[nodiscard]] std::string_view name() const override { return "resize"; }
  [[nodiscard]] bool is_asked(Operation operation) const override { return operation == Operation::Resize; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;

 private:
  bool static_cpus_;
  bool static_memory_;
};

}  // namespace evictd::admission
