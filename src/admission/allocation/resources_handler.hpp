#pragma once
#include <string_view>
#include <utility>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/handler.hpp"

namespace evictd::admission {

/// Gives containers what they are to have for themselves, or rejects the pod. Its verdict carries the allocation; to
/// record it, and to forget it when the pod is gone, is up to the caller that starts the pod. A pod that is resized
/// keeps what it has, and is given nothing more. (kubelet: the allocation manager's handler; kubelet-spec section 14)
class ResourcesHandler final : public AdmissionHandler {
 public:
  explicit ResourcesHandler(ResourceAllocator allocator) : allocator_(std::move(allocator)) {}

  [[nodiscard]] std::string_view name() const override { return "resources"; }
  [[nodiscard]] bool is_asked(Operation /*operation*/) const override { return true; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;

 private:
  ResourceAllocator allocator_;
};

}  // namespace evictd::admission
