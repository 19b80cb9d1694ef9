// What runs in the testbed's pods: a small static program that uses one resource, by a given amount, at a given rate.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using std::this_thread::sleep_for;

constexpr auto pace = 1ms;                           ///< between two steps of something that grows
constexpr auto follow_pace = 2ms;                    ///< between two looks into the file
constexpr std::int64_t address_space = 256LL << 30;  ///< reserved, not used: more than any test asks for
const std::int64_t page_size = ::sysconf(_SC_PAGESIZE);

constexpr auto help = R"(usage:
  load [--ignore-term] pause                      nothing, as a sandbox needs it
  load [--ignore-term] hold SIZE                  SIZE of anonymous memory
  load [--ignore-term] grow START RATE [MAX]      anonymous memory from START on, RATE more each second
  load [--ignore-term] follow FILE                anonymous memory of the size that FILE says, up and down
  load [--ignore-term] burst FILE SIZE [huge] [N] anonymous memory as fast as it can be touched, once FILE is there;
                                                  in huge pages, from N processes at once
  load database DIR SIZE START RATE [FILE]        grows as above, once FILE is there where one is named; SIGTERM has it
                                                  write SIZE into DIR, sync, and end
  load [--ignore-term] fork COUNT                 COUNT sleeping children
  load [--ignore-term] multiply FILE              a sleeping child more every few milliseconds, once FILE is there
  load [--ignore-term] write DIR SIZE RATE        a file of SIZE in DIR
  load [--ignore-term] cache DIR SIZE             file cache of SIZE in use: a file in DIR, written, synced and read
                                                  several times; DIR/load.ready is there then
  load [--ignore-term] stream DIR                 file cache that is used once: a file of holes in DIR, read as fast as
                                                  it can be; DIR/load.read has how many bytes of it
  load [--ignore-term] inodes DIR COUNT           COUNT empty files in DIR

SIZE is in bytes or has the suffix Ki, Mi or Gi; RATE is a SIZE followed by "/s". When its work is done it stays.
SIGTERM ends it at once, which as process 1 of a container takes a handler; with --ignore-term only SIGKILL does.
)";

[[noreturn]] void usage() {
  std::fputs(help, stderr);
  std::_Exit(2);
}

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "load: %s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

std::optional<std::int64_t> parse_size(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (suffix.empty()) return value;
  if (suffix == "Ki") return value << 10;
  if (suffix == "Mi") return value << 20;
  if (suffix == "Gi") return value << 30;
  return std::nullopt;
}

std::int64_t size_or_usage(std::string_view text) {
  const auto size = parse_size(text);
  if (!size) usage();
  return *size;
}

std::int64_t rate_or_usage(std::string_view text) {
  if (!text.ends_with("/s")) usage();
  return size_or_usage(text.substr(0, text.size() - 2));
}

void enter(const char* directory) {
  if (::chdir(directory) != 0) die(directory);
}

/// Empty, also where there was one.
int make_file(const char* name) {
  const int fd = ::open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) die(name);
  return fd;
}

std::array<char, 1 << 16> block{};  ///< what is written, or read, at once

/// Goes on with load.data, which has `written` bytes, until it has as many as are wanted.
void write_up_to(std::int64_t wanted, int fd, std::int64_t& written) {
  while (written < wanted) {
    const auto next = std::min(static_cast<std::int64_t>(block.size()), wanted - written);
    const auto step = ::write(fd, block.data(), static_cast<std::size_t>(next));
    if (step < 0) die("load.data");
    written += step;
  }
}

[[noreturn]] void stay() {
  for (;;) ::pause();
}

/// What something that grows by `rate` a second since `start` has grown to by now.
std::int64_t grown(Clock::time_point start, std::int64_t rate) {
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  return static_cast<std::int64_t>(elapsed.count() * static_cast<double>(rate));
}

/// Anonymous memory of exactly the size asked for. Without huge pages: they would round each step up to 2 MiB.
class Memory {
 public:
  Memory() {
    void* start =
        ::mmap(nullptr, address_space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) die("reserving address space");
    start_ = static_cast<char*>(start);
    ::madvise(start_, address_space, MADV_NOHUGEPAGE);
  }

  void resize(std::int64_t bytes) {
    const std::int64_t wanted = std::min((bytes + page_size - 1) / page_size * page_size, address_space);
    while (size_ < wanted) add(std::min(wanted - size_, step));
    if (size_ > wanted && ::madvise(start_ + wanted, static_cast<std::size_t>(size_ - wanted), MADV_DONTNEED) != 0) {
      die("giving memory back");
    }
    size_ = wanted;
  }

 private:
  static constexpr std::int64_t step = 64 << 10;

  /// By one call for some pages: on a virtual machine a fault for each took 24 times as long. Where the kernel has
  /// no memory for them, or does not know the call (before 5.14), it is faults all the same.
  void add(std::int64_t bytes) {
    if (::madvise(start_ + size_, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) != 0)
      for (std::int64_t offset = 0; offset < bytes; offset += page_size) start_[size_ + offset] = 1;
    size_ += bytes;
  }

  char* start_ = nullptr;
  std::int64_t size_ = 0;
};

[[noreturn]] void grow(std::int64_t start_size, std::int64_t rate, std::int64_t max) {
  Memory memory;
  memory.resize(start_size);
  const auto start = Clock::now();
  for (std::int64_t size = start_size; size < max; sleep_for(pace)) {
    size = std::min(max, start_size + grown(start, rate));
    memory.resize(size);
  }
  stay();
}

/// A file that is missing or unreadable for the moment changes nothing.
[[noreturn]] void follow(const char* file) {
  Memory memory;
  for (;; sleep_for(follow_pace)) {
    const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    std::array<char, 64> buffer{};
    const auto length = ::read(fd, buffer.data(), buffer.size());
    ::close(fd);
    if (length <= 0) continue;
    std::string_view text(buffer.data(), static_cast<std::size_t>(length));
    while (text.ends_with('\n')) text.remove_suffix(1);
    if (const auto size = parse_size(text)) memory.resize(*size);
  }
}

/// Touches all of it, a page after the other, without a pause.
[[noreturn]] void take(std::int64_t size, bool huge) {
  constexpr std::int64_t huge_page = 2 << 20;
  void* start = ::mmap(nullptr, static_cast<std::size_t>(size + huge_page), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) die("reserving address space");
  auto room = static_cast<std::size_t>(size + huge_page);
  auto* memory = static_cast<char*>(std::align(huge_page, static_cast<std::size_t>(size), start, room));
  ::madvise(memory, static_cast<std::size_t>(size), huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  const std::int64_t step = huge ? huge_page : page_size;
  for (std::int64_t offset = 0; offset < size; offset += step) memory[offset] = 1;
  stay();
}

/// The processes are there before the file is: what follows is nothing but taking.
[[noreturn]] void burst(const char* file, std::int64_t size, bool huge, std::int64_t processes) {
  for (std::int64_t other = 1; other < processes; ++other) {
    const auto pid = ::fork();
    if (pid < 0) die("fork");
    if (pid == 0) break;
  }
  while (::access(file, F_OK) != 0) sleep_for(pace);
  take(size / processes, huge);
}

std::atomic<bool> told_to_end = false;

/// As a database does: what it has in memory is on the disk before it ends, and a file "clean" says so. It is at work
/// also while the disk is not quick: whoever does nothing at all has no use for time.
[[noreturn]] void end_in_order(std::int64_t size) {
  const int fd = make_file("load.data");
  std::int64_t written = 0;
  write_up_to(size, fd, written);
  auto synced = std::async(std::launch::async, [fd] { return ::fsync(fd) == 0; });
  while (synced.wait_for(50 * pace) != std::future_status::ready)
    for (const auto until = Clock::now() + pace; Clock::now() < until;) {
    }
  if (!synced.get()) die("load.data");
  make_file("clean");
  std::_Exit(0);
}

[[noreturn]] void be_a_database(const char* directory, std::int64_t end_size, std::int64_t start_size,
                                std::int64_t rate, const char* go) {
  enter(directory);
  std::signal(SIGTERM, [](int) { told_to_end = true; });
  Memory memory;
  memory.resize(start_size);
  while (go != nullptr && ::access(go, F_OK) != 0 && !told_to_end) sleep_for(pace);
  const auto start = Clock::now();
  for (std::int64_t size = start_size;; sleep_for(pace)) {
    // By small steps: it hears of the signal between two of them.
    const auto wanted = start_size + grown(start, rate);
    while (size < wanted && !told_to_end) memory.resize(size = std::min<std::int64_t>(wanted, size + (64 << 10)));
    if (told_to_end) end_in_order(end_size);
  }
}

[[noreturn]] void fork_children(std::int64_t count) {
  for (std::int64_t child = 0; child < count; ++child) {
    const auto pid = ::fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      stay();
    }
  }
  stay();
}

/// Up to some hundreds.
[[noreturn]] void multiply(const char* file) {
  constexpr int most = 500;
  while (::access(file, F_OK) != 0) sleep_for(pace);
  for (int child = 0; child < most; ++child, sleep_for(5 * pace))
    if (::fork() == 0) stay();
  stay();
}

[[noreturn]] void write_file(const char* directory, std::int64_t size, std::int64_t rate) {
  enter(directory);
  const int fd = make_file("load.data");
  const auto start = Clock::now();
  for (std::int64_t written = 0; written < size; sleep_for(pace))
    write_up_to(std::min(size, grown(start, rate)), fd, written);
  stay();
}

/// The kernel counts what was read more than once as used, and can take back at once what is synced.
[[noreturn]] void cache_file(const char* directory, std::int64_t size) {
  enter(directory);
  const int fd = make_file("load.data");
  std::int64_t written = 0;
  write_up_to(size, fd, written);
  if (::fsync(fd) != 0) die("load.data");
  for (int time = 0; time < 3; ++time) {
    if (::lseek(fd, 0, SEEK_SET) < 0) die("load.data");
    while (::read(fd, block.data(), block.size()) > 0) {
    }
  }
  make_file("load.ready");
  stay();
}

/// Nobody reads to the end of so large a file.
[[noreturn]] void stream_file(const char* directory) {
  constexpr std::int64_t endless = 1LL << 42;
  constexpr std::int64_t told_every = 16 << 20;
  enter(directory);
  const int fd = make_file("load.data");
  if (::ftruncate(fd, endless) != 0) die("load.data");
  const int told = make_file("load.read");
  for (std::int64_t bytes = 0;;) {
    const auto step = ::read(fd, block.data(), block.size());
    if (step <= 0) die("load.data");
    bytes += step;
    if (bytes % told_every != 0) continue;
    std::array<char, 32> text{};
    const int length = std::snprintf(text.data(), text.size(), "%lld\n", static_cast<long long>(bytes));
    if (::pwrite(told, text.data(), static_cast<std::size_t>(length), 0) != length) die("load.read");
  }
}

[[noreturn]] void make_files(const char* directory, std::int64_t count) {
  enter(directory);
  for (std::int64_t number = 0; number < count; ++number) {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "load.%lld", static_cast<long long>(number));
    ::close(make_file(name.data()));
  }
  stay();
}

[[noreturn]] void run(std::span<char*> words) {
  if (words.empty()) usage();
  const std::string_view mode = words[0];
  const auto arguments = words.subspan(1);
  const auto count = arguments.size();

  if (mode == "pause" && count == 0) stay();
  if (mode == "hold" && count == 1) {
    const auto size = size_or_usage(arguments[0]);
    grow(size, 0, size);
  }
  if (mode == "grow" && (count == 2 || count == 3)) {
    grow(size_or_usage(arguments[0]), rate_or_usage(arguments[1]),
         count == 3 ? size_or_usage(arguments[2]) : address_space);
  }
  if (mode == "follow" && count == 1) follow(arguments[0]);
  if (mode == "burst" && count >= 2 && count <= 4) {
    const bool huge = count > 2 && std::string_view(arguments[2]) == "huge";
    if (count == 4 && !huge) usage();
    const bool counted = count == (huge ? 4 : 3);
    const auto processes = counted ? size_or_usage(arguments[count - 1]) : 1;
    if (processes < 1) usage();
    burst(arguments[0], size_or_usage(arguments[1]), huge, processes);
  }
  if (mode == "database" && (count == 4 || count == 5))
    be_a_database(arguments[0], size_or_usage(arguments[1]), size_or_usage(arguments[2]), rate_or_usage(arguments[3]),
                  count == 5 ? arguments[4] : nullptr);
  if (mode == "fork" && count == 1) fork_children(size_or_usage(arguments[0]));
  if (mode == "multiply" && count == 1) multiply(arguments[0]);
  if (mode == "write" && count == 3) write_file(arguments[0], size_or_usage(arguments[1]), rate_or_usage(arguments[2]));
  if (mode == "cache" && count == 2) cache_file(arguments[0], size_or_usage(arguments[1]));
  if (mode == "stream" && count == 1) stream_file(arguments[0]);
  if (mode == "inodes" && count == 2) make_files(arguments[0], size_or_usage(arguments[1]));
  usage();
}

}  // namespace

int main(int argc, char** argv) {
  std::span<char*> words(argv + 1, static_cast<std::size_t>(std::max(argc - 1, 0)));
  const bool ignore_term = !words.empty() && std::string_view(words[0]) == "--ignore-term";
  if (ignore_term) words = words.subspan(1);

  std::signal(SIGTERM, ignore_term ? SIG_IGN : [](int) { ::_exit(0); });
  std::signal(SIGCHLD, SIG_IGN);  // process 1 of a pod: the kernel reaps whoever is orphaned
  run(words);
}
