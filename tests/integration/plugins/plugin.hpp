#pragma once
#include <deviceplugin.pb.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// What the device plugins of the tests have in common: programs as vendors write them, against the published API alone.
namespace test_plugins {

/// A plugin of one kind.
class Kind {
 public:
  virtual ~Kind() = default;
  [[nodiscard]] virtual v1beta1::DevicePluginOptions options() const = 0;
  /// Of the container that is to have these devices.
  [[nodiscard]] virtual v1beta1::ContainerAllocateResponse allocate(const std::vector<std::string>& ids) const = 0;
  /// Which of those available it would give.
  [[nodiscard]] virtual std::vector<std::string> prefer(const std::vector<std::string>& available, int count) const {
    static_cast<void>(available);
    static_cast<void>(count);
    return {};
  }
};

/// The arguments of every plugin: DIRECTORY RESOURCE NAME OWN.
struct Arguments {
  std::filesystem::path directory;  ///< of the plugins' sockets
  std::string resource;             ///< "example.com/gpu"
  std::string name;                 ///< of its socket, without ".sock"
  /// Its own directory: `devices` in it has a line "ID HEALTH" for each device, and is read again and again; `calls`
  /// gets a line for each call; while `hold` is there Allocate is not answered.
  std::filesystem::path own;
};

/// Registers, and again whenever its socket was removed, until it is killed. Returns the exit code of wrong usage.
int run_plugin(int argc, char** argv, const Kind& kind);

/// "a b c"
[[nodiscard]] std::string joined(const std::vector<std::string>& ids);

}  // namespace test_plugins
