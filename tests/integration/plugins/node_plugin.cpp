// A device plugin that gives device nodes and a mount, and wants to hear before a container starts.
#include "plugin.hpp"

namespace {

class WithNodes final : public test_plugins::Kind {
 public:
  [[nodiscard]] v1beta1::DevicePluginOptions options() const override {
    v1beta1::DevicePluginOptions options;
    options.set_pre_start_required(true);
    return options;
  }

  [[nodiscard]] v1beta1::ContainerAllocateResponse allocate(const std::vector<std::string>& ids) const override {
    v1beta1::ContainerAllocateResponse response;
    (*response.mutable_envs())["NODES"] = test_plugins::joined(ids);
    for (const auto& id : ids) {
      auto& device = *response.add_devices();
      device.set_host_path("/dev/zero");  // as good as any
      device.set_container_path("/dev/evictd-" + id);
      device.set_permissions("r");
    }
    auto& mount = *response.add_mounts();
    mount.set_host_path("/proc/version");
    mount.set_container_path("/plugin-version");
    mount.set_read_only(true);
    return response;
  }
};

}  // namespace

int main(int argc, char** argv) { return test_plugins::run_plugin(argc, argv, WithNodes{}); }
