#include "node/freezer.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "os/log.hpp"
#include "os/now.hpp"
#include "os/numbers.hpp"

using namespace std::chrono_literals;

namespace evictd::node {
namespace {

struct FreezerFile {
  std::string name;
  std::string thawed;
  std::string frozen;
};

FreezerFile freezer_file(CgroupVersion version) {
  if (version == CgroupVersion::v2) return {.name = "cgroup.freeze", .thawed = "0", .frozen = "1"};
  return {.name = "freezer.state", .thawed = "THAWED", .frozen = "FROZEN"};
}

bool has_stopped(const os::Directory& cgroup, CgroupVersion version) {
  if (version == CgroupVersion::v1) {
    const auto state = read_held_file(cgroup, "freezer.state");
    return !state || *state == "FROZEN";
  }
  const auto events = cgroup.file("cgroup.events");
  if (!events) return true;
  std::array<char, 256> buffer;
  const auto text = events->read(buffer);
  return !text || os::find_number(*text, "frozen").value_or(1) == 1;
}

Result<void> write_frozen(const CgroupHierarchy& hierarchy, const HoldNotes& notes, HoldNote note) {
  const auto cgroup = hold_directory(hierarchy, HoldTree::freezer, note.cgroup);
  if (!cgroup) return std::unexpected(cgroup.error());
  const auto file = freezer_file(hierarchy.version());
  const auto before = read_held_file(*cgroup, file.name);
  if (!before) return std::unexpected(before.error());
  if (*before != file.thawed) return fail(fmt::format("{}: someone else has frozen it", cgroup->path()));
  note.values.push_back(
      {.tree = HoldTree::freezer, .inode = cgroup->inode(), .file = file.name, .before = *before, .now = file.frozen});
  if (const auto noted = notes.write(note); !noted) return std::unexpected(noted.error());
  if (const auto written = write_held_file(*cgroup, file.name, file.frozen); !written)
    return std::unexpected(written.error());
  constexpr auto patience = 20ms;
  const auto give_up = os::now() + patience;
  while (!has_stopped(*cgroup, hierarchy.version()) && os::now() < give_up) std::this_thread::sleep_for(500us);
  return {};
}

}  // namespace

Result<void> freeze(const CgroupHierarchy& hierarchy, const HoldNotes& notes, const std::string& uid,
                    const std::string& cgroup) {
  if (const auto lifted = lift_hold(hierarchy, notes, uid); !lifted) return std::unexpected(lifted.error());
  auto frozen = write_frozen(hierarchy, notes, {.uid = uid, .cgroup = cgroup});
  if (!frozen)
    if (const auto lifted = lift_hold(hierarchy, notes, uid); !lifted)
      os::log_error("a pod may still be frozen: {}", lifted.error().message);
  return frozen;
}

}  // namespace evictd::node
