#include "commands/disarm.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <variant>

#include "app/configuration.hpp"
#include "app/runtime_offers.hpp"
#include "commands/file_options.hpp"
#include "config/agent_configuration.hpp"
#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "os/exit_code.hpp"
#include "wake/fence.hpp"

namespace evictd::commands {
namespace {

std::string what_was_done(const wake::FenceLook& look, const std::string& pods) {
  if (std::holds_alternative<wake::fence::Respect>(look.step))
    return fmt::format("memory.high of {} is {}, set by someone else: left as it is", pods, *look.before);
  if (look.before) return fmt::format("lifted the fence of {}, which stood at {}", pods, *look.before);
  return fmt::format("{} has no fence", pods);
}

int disarm(const app::ConfigurationFiles& files) {
  const auto configuration = app::load_configuration(files, app::ask_cgroup_driver);
  if (!configuration) return os::wrong_usage(configuration.error());
  const auto& node = configuration->agent.node;
  const auto hierarchy = node::CgroupHierarchy::detect(node.cgroup_mount);
  if (!hierarchy) return os::failed(hierarchy.error());
  if (hierarchy->version() == node::CgroupVersion::v1) return print("no fence: cgroup v1 has none");
  const auto pods = node::pods_cgroup(node);
  const auto cgroup = hierarchy->memory(pods);
  if (!cgroup && cgroup.error().is_gone()) return print(fmt::format("no fence: there is no cgroup {}", pods));
  if (!cgroup) return os::failed(cgroup.error());
  const auto look = wake::lift_fence(*cgroup);
  if (!look) return os::failed(look.error());
  std::error_code gone;
  std::filesystem::remove(config::runtime_files(configuration->agent).fence, gone);
  return print(what_was_done(*look, pods));
}

}  // namespace

Command disarm_command() {
  return {.name = "disarm",
          .description = "Lift a fence (notifier.fence) that an evictd left behind",
          .declare = [](CommandLine& line) {
            const auto files = std::make_shared<app::ConfigurationFiles>();
            add_file_options(line, *files);
            return [files] { return disarm(*files); };
          }};
}

}  // namespace evictd::commands
