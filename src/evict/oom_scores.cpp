#include "evict/oom_scores.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/oom_steering.hpp"
#include "node/cgroup_processes.hpp"
#include "os/atomic_file.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

namespace evictd::evict {

struct OomScores::Seen {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start = 0;
  std::int64_t bytes = 0;
  int adj = 0;  // now
  int own = 0;  // before it was raised
};

/// At a pod's processes.
struct OomScores::Look {
  std::vector<Seen> seen;
  std::set<int> others;  // what those have that are not raised: the protected, and who is one of too many
};

namespace {

/// Of a note: 8 pods, each with 1000 values and 600 processes, are less.
constexpr std::size_t longest_note = std::size_t{1} << 20;

std::optional<std::string> read_at(int directory, const char* name) {
  const os::FileDescriptor file{::openat(directory, name, O_RDONLY | O_CLOEXEC)};
  std::array<char, 1024> buffer;
  const auto size = file ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
  if (size <= 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<std::size_t>(size));
}

struct Birth {
  pid_t parent = 0;
  std::uint64_t start = 0;
};

/// Of /proc/PID/stat: "7 (any name) S 1 …", the 4th and the 22nd field.
std::optional<Birth> read_birth(int process) {
  const auto stat = read_at(process, "stat");
  const auto name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields{stat->substr(name_end + 1)};
  std::string skipped;
  Birth birth;
  fields >> skipped >> birth.parent;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  if (!(fields >> birth.start)) return std::nullopt;
  return birth;
}

std::optional<int> read_adj(int process) {
  const auto text = read_at(process, "oom_score_adj");
  int value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

/// Bytes in memory: the second field of statm, in pages.
std::int64_t read_resident(int process) {
  std::istringstream fields{read_at(process, "statm").value_or("")};
  std::int64_t pages = 0;
  fields >> pages >> pages;
  return fields ? pages * ::sysconf(_SC_PAGESIZE) : 0;
}

/// The directory, which stays that of this process and is empty once it has ended.
os::FileDescriptor open_process(const std::string& proc, pid_t pid) {
  return os::FileDescriptor{::open(fmt::format("{}/{}", proc, pid).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

/// errno; 0: it is written.
int write_adj(int process, int value) {
  const os::FileDescriptor file{::openat(process, "oom_score_adj", O_WRONLY | O_TRUNC | O_CLOEXEC)};
  if (!file) return errno;
  const auto text = fmt::format("{}\n", value);
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

bool has_ended(int code) { return code == ESRCH || code == ENOENT || code == EINVAL; }

}  // namespace

OomScores::Look OomScores::look(const node::CgroupHierarchy& hierarchy, const std::string& cgroup) const {
  Look look;
  auto& seen = look.seen;
  const auto pids = node::processes(hierarchy, cgroup).value_or(std::vector<pid_t>{});
  for (std::size_t i = 0; i < pids.size(); ++i) {
    const auto pid = pids[i];
    const auto process = open_process(places_.proc, pid);
    const auto adj = process ? read_adj(process.get()) : std::nullopt;
    if (!adj) continue;
    if (i >= most_looked_at || places_.is_protected(pid)) {
      look.others.insert(*adj);
      continue;
    }
    const auto birth = read_birth(process.get());
    if (!birth) continue;
    seen.push_back({.pid = pid,
                    .parent = birth->parent,
                    .start = birth->start,
                    .bytes = read_resident(process.get()),
                    .adj = *adj,
                    .own = *adj});
  }
  const auto known = pods_.find(cgroup);
  if (known == pods_.end()) return look;
  const auto& [values, processes] = known->second;
  std::erase_if(look.others, [&](int adj) { return values.contains(adj); });  // raised, or born so
  const auto held = [&](pid_t pid) {
    const auto found = processes.find(pid);
    return found == processes.end() ? nullptr : &found->second;
  };
  for (auto& each : seen) {
    const auto raised = values.find(each.adj);
    if (raised == values.end()) continue;  // its own, or somebody's who changed it since
    const auto* same = held(each.pid);
    if (same != nullptr && same->start != each.start) same = nullptr;
    const auto* parent = same == nullptr ? held(each.parent) : nullptr;
    each.own = same != nullptr ? same->own : parent != nullptr ? parent->own : raised->second;
    each.own = std::min(each.own, each.adj);
  }
  return look;
}

OomOutcome OomScores::follow(const OomPlan& plan) {
  const std::unique_lock lock{mutex_};
  OomOutcome outcome;
  if (ended_) return outcome;
  const auto hierarchy = node::CgroupHierarchy::detect(places_.cgroup_mount);
  if (!hierarchy) {
    outcome.error = hierarchy.error().message;
    return outcome;
  }
  const auto planned = [&](const std::string& cgroup) {
    return std::ranges::find(plan.pods, cgroup, &OomPlan::Pod::cgroup) != plan.pods.end();
  };
  for (auto pod = pods_.begin(); pod != pods_.end();) {
    const auto next = std::next(pod);
    if (!planned(pod->first)) give_back(*hierarchy, pod, outcome);
    pod = next;
  }

  std::vector<Look> looks;
  std::vector<core::OomPod> pods;
  for (const auto& pod : plan.pods) {
    if (looks.size() == most_pods) break;
    looks.push_back(look(*hierarchy, pod.cgroup));
    forget_ended(pod.cgroup, looks.back().seen);
    pods.push_back(weigh(looks.back(), pod.most));
  }
  const auto raised = core::steer(pods, plan.behind, places_.memory);

  std::vector<std::vector<Change>> changes;
  for (std::size_t i = 0; i < looks.size(); ++i)
    changes.push_back(note(plan.pods[i].cgroup, looks[i].seen, raised[i], plan.pods[i].most));
  if (const auto saved = save(); !saved) {
    outcome.error = saved.error().message;
    return outcome;
  }
  for (std::size_t i = 0; i < looks.size(); ++i) write(*hierarchy, plan.pods[i].cgroup, changes[i], outcome);
  return outcome;
}

/// The largest of them, which come first from now on. The kubelet gives `most` to a container without a request.
core::OomPod OomScores::weigh(Look& look, int most) {
  auto& seen = look.seen;
  std::ranges::stable_sort(seen, std::ranges::greater{}, &Seen::bytes);
  core::OomPod pod{.most = most, .processes = {}, .taken = look.others};
  pod.taken.insert(most);
  for (const auto& process : seen) pod.taken.insert(process.own);
  for (const auto& process : std::span{seen}.first(std::min(seen.size(), most_processes)))
    pod.processes.push_back({.bytes = process.bytes, .adj = process.own});
  return pod;
}

void OomScores::forget_ended(const std::string& cgroup, const std::vector<Seen>& seen) {
  const auto known = pods_.find(cgroup);
  if (known == pods_.end()) return;
  std::set<pid_t> pids;
  for (const auto& process : seen) pids.insert(process.pid);
  std::erase_if(known->second.processes, [&](const auto& held) { return !pids.contains(held.first); });
}

/// What is to be written. All processes that were seen are noted: one that has by itself what others are raised to must
/// not be taken for one of these.
std::vector<OomScores::Change> OomScores::note(const std::string& cgroup, const std::vector<Seen>& seen,
                                               std::optional<int> raised, int most) {
  std::vector<Change> changes;
  if (!raised && !pods_.contains(cgroup)) return changes;
  auto& noted = pods_[cgroup];
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto& process = seen[i];
    noted.processes[process.pid] = {.start = process.start, .own = process.own};
    // Of the others those that were raised stay so.
    const auto value = i < most_processes ? core::raised_adj(process.own, raised, most) : process.adj;
    if (value != process.adj) changes.push_back({process.pid, process.start, value});
    if (value == process.own) continue;
    auto& own = noted.values.try_emplace(value, process.own).first->second;
    own = std::max(own, process.own);
  }
  return changes;
}

OomOutcome OomScores::restore() {
  const std::unique_lock lock{mutex_};
  return restore_locked();
}

OomOutcome OomScores::end() {
  std::unique_lock lock{mutex_, std::chrono::seconds(1)};
  if (!lock.owns_lock())
    return {.error = "what writes to processes hangs: \"evictd disarm\" gives back what was raised"};
  ended_ = true;
  return restore_locked();
}

OomOutcome OomScores::restore_locked() {
  OomOutcome outcome;
  if (pods_.empty()) return outcome;
  const auto hierarchy = node::CgroupHierarchy::detect(places_.cgroup_mount);
  if (!hierarchy) {
    outcome.error = hierarchy.error().message;
    return outcome;
  }
  for (auto pod = pods_.begin(); pod != pods_.end();) {
    const auto next = std::next(pod);
    give_back(*hierarchy, pod, outcome);
    pod = next;
  }
  if (const auto saved = save(); !saved && outcome.error.empty()) outcome.error = saved.error().message;
  return outcome;
}

/// Who has a value that was written, and had another one before. A process that cannot be opened while it runs is an
/// error: it may be one of them.
Result<std::vector<OomScores::Change>> OomScores::raised_still(const node::CgroupHierarchy& hierarchy,
                                                               const std::string& cgroup, const Raised& raised) const {
  const auto pids = node::processes(hierarchy, cgroup);
  if (!pids && pids.error().is_gone()) return std::vector<Change>{};
  if (!pids) return std::unexpected(pids.error());
  std::vector<Change> changes;
  for (const auto pid : *pids) {
    const auto process = open_process(places_.proc, pid);
    if (!process && !has_ended(errno)) return std::unexpected(os::system_error(errno, places_.proc));
    const auto adj = process ? read_adj(process.get()) : std::nullopt;
    const auto value = adj ? raised.values.find(*adj) : raised.values.end();
    if (value == raised.values.end()) continue;
    const auto birth = read_birth(process.get());
    if (!birth) continue;
    const auto held = raised.processes.find(pid);
    const bool same = held != raised.processes.end() && held->second.start == birth->start;
    const auto own = same ? held->second.own : value->second;
    if (own < *adj) changes.push_back({pid, birth->start, own});
  }
  return changes;
}

/// What is refused, or cannot be looked at, stays known, and in the note. What was forked while the others were given
/// back has the raised value still: so until a look finds none, and one a little later as well, since a child has its
/// value before it is listed.
void OomScores::give_back(const node::CgroupHierarchy& hierarchy, Pods::iterator pod, OomOutcome& outcome) {
  constexpr int most_rounds = 20;
  constexpr auto fork_time = std::chrono::milliseconds(10);
  bool wrote = false;
  for (int round = 0; round < most_rounds; ++round) {
    const auto changes = raised_still(hierarchy, pod->first, pod->second);
    if (!changes) {
      outcome.error = changes.error().message;
      return;
    }
    if (changes->empty() && !wrote) {
      pods_.erase(pod);
      return;
    }
    wrote = !changes->empty();
    if (!wrote) {
      std::this_thread::sleep_for(fork_time);
      continue;
    }
    const auto refused = outcome.refused;
    write(hierarchy, pod->first, *changes, outcome);
    if (outcome.refused != refused) return;
  }
  outcome.error = fmt::format("{}: its processes fork as quickly as they are given back what they had", pod->first);
}

/// A process that had this pid and this start before the cgroup was listed, and has them now, is the one that is
/// listed.
void OomScores::write(const node::CgroupHierarchy& hierarchy, const std::string& cgroup,
                      const std::vector<Change>& changes, OomOutcome& outcome) const {
  if (changes.empty()) return;
  const auto listed = node::processes(hierarchy, cgroup).value_or(std::vector<pid_t>{});
  for (const auto& [pid, start, value] : changes) {
    if (!std::ranges::binary_search(listed, pid)) continue;
    const auto process = open_process(places_.proc, pid);
    const auto birth = process ? read_birth(process.get()) : std::nullopt;
    if (!birth || birth->start != start) continue;
    const auto code = write_adj(process.get(), value);
    if (code == 0) {
      ++outcome.changed;
    } else if (!has_ended(code)) {
      ++outcome.refused;
      outcome.error = os::system_error(code, fmt::format("{}/{}/oom_score_adj", places_.proc, pid)).message;
    }
  }
}

/// "pod CGROUP", and of each its values and processes; no file where there is none.
Result<void> OomScores::save() {
  if (pods_.empty()) {
    saved_.clear();
    std::error_code error;
    std::filesystem::remove(places_.note, error);
    return {};
  }
  std::string text;
  for (const auto& [cgroup, raised] : pods_) {
    fmt::format_to(std::back_inserter(text), "pod {}\n", cgroup);
    for (const auto& [value, own] : raised.values)
      fmt::format_to(std::back_inserter(text), "value {} {}\n", value, own);
    for (const auto& [pid, held] : raised.processes)
      fmt::format_to(std::back_inserter(text), "process {} {} {}\n", pid, held.start, held.own);
  }
  if (text == saved_) return {};
  auto written = os::write_atomically(places_.note, text, {.durable = false});
  if (written) saved_ = std::move(text);
  return written;
}

bool OomScores::adopt() {
  const std::unique_lock lock{mutex_};
  std::ifstream note{places_.note};
  if (!note) return false;
  std::string text(longest_note, '\0');
  note.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(note.gcount()));
  std::istringstream lines{text};
  auto pod = pods_.end();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string kind;
    words >> kind >> std::ws;
    if (std::string cgroup; kind == "pod" && std::getline(words, cgroup)) pod = pods_.try_emplace(cgroup).first;
    if (pod == pods_.end()) continue;
    if (int value = 0, own = 0; kind == "value" && words >> value >> own) pod->second.values[value] = own;
    pid_t pid = 0;
    if (Held held; kind == "process" && words >> pid >> held.start >> held.own) pod->second.processes[pid] = held;
  }
  return true;
}

std::string restore_left_oom_scores(const OomScores::Places& places) {
  OomScores scores{places};
  if (!scores.adopt()) return {};
  const auto outcome = scores.restore();
  if (!outcome.error.empty())
    return fmt::format("oom_score_adj of {} processes stays raised: {}", outcome.refused, outcome.error);
  std::error_code error;
  std::filesystem::remove(places.note, error);
  return fmt::format("gave {} processes the oom_score_adj back that they had", outcome.changed);
}

}  // namespace evictd::evict
