#include "benchmarks/observer.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "os/numbers.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"

namespace bench {

namespace {

/// Each look takes some 25 µs of a processor from whoever runs there, evictd or the hog. At 50 µs that put the kill off
/// by a fifth.
constexpr long period_ns = 200'000;
constexpr std::size_t most_samples = 2'000'000;  // 100 s
constexpr std::int64_t first_release_bytes = 32 << 20;

/// 0 for what is gone.
std::int64_t read_number(const evictd::os::FileDescriptor& file) {
  std::array<char, 32> text{};
  const auto length = ::pread(file.get(), text.data(), text.size(), 0);
  std::int64_t value = 0;
  if (length > 0) std::from_chars(text.data(), text.data() + length, value);
  return value;
}

std::int64_t read_count(const evictd::os::FileDescriptor& file) {
  return evictd::os::find_number(read_counter(file), "oom_kill").value_or(0);
}

}  // namespace

Nanoseconds monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string usage_file() { return testbed::cgroup_host().v2 ? "memory.current" : "memory.usage_in_bytes"; }

evictd::os::FileDescriptor open_counter(const std::filesystem::path& directory, const std::string& name) {
  evictd::os::FileDescriptor file{::open((directory / name).c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.get() < 0) testbed::fail_errno((directory / name).native());
  return file;
}

std::string read_counter(const evictd::os::FileDescriptor& file) {
  std::string text(8192, '\0');
  const auto length = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return text;
}

Observer::Observer(const std::filesystem::path& node, const std::filesystem::path& pod)
    : node_{open_counter(node, usage_file())}, pod_{open_counter(pod, usage_file())}, pod_usage_{read_number(pod_)} {
  samples_.reserve(most_samples);
  thread_ = std::thread([this] { look(); });
}

void Observer::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Observer::look() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // otherwise each sleep takes 50 µs more
  const sched_param priority{.sched_priority = 1};
  ::pthread_setschedparam(::pthread_self(), SCHED_RR, &priority);
  const timespec pause{.tv_sec = 0, .tv_nsec = period_ns};
  while (!stopping_ && samples_.size() < most_samples) {
    const Sample sample{.time = monotonic_now(), .node = read_number(node_), .pod = read_number(pod_)};
    samples_.push_back(sample);
    pod_usage_ = sample.pod;
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
  }
}

Course course_of(const std::vector<Sample>& samples, std::int64_t level) {
  Course course;
  if (samples.empty()) return course;
  course.peak_of_node = std::ranges::max_element(samples, {}, &Sample::node)->node;
  const auto crossing = std::ranges::find_if(samples, [&](const Sample& s) { return s.node >= level; });
  if (crossing == samples.end()) return course;
  course.crossing = crossing->time;

  const auto peak = std::ranges::max_element(samples, {}, &Sample::pod);
  const auto falls_to = [&](std::int64_t bytes) -> std::optional<Nanoseconds> {
    const auto fallen = std::ranges::find_if(peak, samples.end(), [&](const Sample& s) { return s.pod <= bytes; });
    return fallen == samples.end() ? std::nullopt : std::optional(fallen->time);
  };
  course.first_release = falls_to(peak->pod - first_release_bytes);
  if (course.first_release) course.growth_over = peak->time;
  course.released = falls_to(peak->pod / 20);
  return course;
}

KernelKills::KernelKills(const std::filesystem::path& node) {
  const bool v2 = testbed::cgroup_host().v2;
  files_.push_back(open_counter(node, v2 ? "memory.events" : "memory.oom_control"));
  if (!v2)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(node))
      if (entry.is_directory()) files_.push_back(open_counter(entry.path(), "memory.oom_control"));
  for (const auto& file : files_) before_.push_back(read_count(file));
}

bool KernelKills::look() {
  for (std::size_t i = 0; i < files_.size(); ++i) any_ = any_ || read_count(files_[i]) > before_[i];
  return any_;
}

void warm_memory(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory != MAP_FAILED) ::munmap(memory, size);
}

}  // namespace bench
