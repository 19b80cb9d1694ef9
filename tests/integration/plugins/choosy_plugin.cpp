// A device plugin that would rather give its last devices, and says by a variable and an annotation which they are.
#include <algorithm>
#include <functional>

#include "plugin.hpp"

namespace {

class Choosy final : public test_plugins::Kind {
 public:
  [[nodiscard]] v1beta1::DevicePluginOptions options() const override {
    v1beta1::DevicePluginOptions options;
    options.set_get_preferred_allocation_available(true);
    return options;
  }

  [[nodiscard]] v1beta1::ContainerAllocateResponse allocate(const std::vector<std::string>& ids) const override {
    v1beta1::ContainerAllocateResponse response;
    (*response.mutable_envs())["CHOSEN"] = test_plugins::joined(ids);
    (*response.mutable_annotations())["example.com/chosen"] = test_plugins::joined(ids);
    return response;
  }

  [[nodiscard]] std::vector<std::string> prefer(const std::vector<std::string>& available, int count) const override {
    auto ids = available;
    std::ranges::sort(ids, std::greater{});
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(count)));
    return ids;
  }
};

}  // namespace

int main(int argc, char** argv) { return test_plugins::run_plugin(argc, argv, Choosy{}); }
