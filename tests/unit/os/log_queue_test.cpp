#include "os/log_queue.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace evictd::os::log_queue_test {
namespace {

/// A reader who takes nothing until he is told to, and then all.
class Reader final : public LogSink {
 public:
  void write(const LogEntry& entry) override {
    std::unique_lock lock{mutex_};
    ++taken_;
    change_.notify_all();
    change_.wait(lock, [&] { return reads_; });
    lines_.push_back(entry.message);
  }
  void begin_to_read() {
    const std::scoped_lock lock{mutex_};
    reads_ = true;
    change_.notify_all();
  }
  void wait_until_one_is_taken() {
    std::unique_lock lock{mutex_};
    change_.wait(lock, [&] { return taken_ > 0; });
  }
  std::vector<std::string> lines() {
    const std::scoped_lock lock{mutex_};
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  std::vector<std::string> lines_;
  int taken_ = 0;
  bool reads_ = false;
};

LogEntry line(std::string text) { return {.message = std::move(text)}; }

std::vector<std::string> numbers(int first, int last) {
  std::vector<std::string> texts;
  for (int i = first; i <= last; ++i) texts.push_back(std::to_string(i));
  return texts;
}

}  // namespace

TEST_CASE("lines are written in their order, and all of them") {
  Reader reader;
  reader.begin_to_read();
  LogQueue queue{reader};
  for (const auto& text : numbers(1, 1000)) queue.push(line(text));
  REQUIRE(queue.wait_until_written(30s));
  CHECK(reader.lines() == numbers(1, 1000));
}

TEST_CASE("what a slow reader has no room for is dropped, counted, and said where it is missing") {
  Reader reader;
  LogQueue queue{reader, {.lines = 4, .bytes = 1 << 20}};
  queue.push(line("0"));
  reader.wait_until_one_is_taken();
  for (const auto& text : numbers(1, 7)) queue.push(line(text));  // four fit
  CHECK_FALSE(queue.wait_until_written(20ms));
  reader.begin_to_read();
  REQUIRE(queue.wait_until_written(30s));
  queue.push(line("8"));
  REQUIRE(queue.wait_until_written(30s));
  CHECK(reader.lines() == std::vector<std::string>{"0", "1", "2", "3", "4",
                                                   "3 lines of the log were dropped because its reader was too slow",
                                                   "8"});
}

TEST_CASE("a single line that was dropped is said, too, and long lines take the room of many") {
  Reader reader;
  LogQueue queue{reader, {.lines = 100, .bytes = 4096}};
  queue.push(line("0"));
  reader.wait_until_one_is_taken();
  const std::string longer_than_all(10'000, 'x');
  queue.push(line(longer_than_all));  // into an empty queue
  queue.push(line("2"));
  reader.begin_to_read();
  REQUIRE(queue.wait_until_written(30s));
  CHECK(reader.lines() == std::vector<std::string>{"0", longer_than_all,
                                                   "1 line of the log was dropped because its reader was too slow"});
}

TEST_CASE("a line that cannot be written takes no other with it") {
  class Failing final : public LogSink {
   public:
    void write(const LogEntry& entry) override {
      if (entry.message == "2") throw std::runtime_error("no memory");
      reader.write(entry);
    }
    Reader reader;
  };
  Failing failing;
  auto& reader = failing.reader;
  reader.begin_to_read();
  LogQueue queue{failing};
  for (const auto& text : numbers(1, 3)) queue.push(line(text));
  REQUIRE(queue.wait_until_written(30s));
  CHECK(reader.lines() == std::vector<std::string>{"1", "3"});
}

TEST_CASE("lines of many threads are all written, each thread's in its order") {
  Reader reader;
  reader.begin_to_read();
  LogQueue queue{reader};
  {
    std::vector<std::jthread> threads;
    for (char name = 'a'; name <= 'd'; ++name)
      threads.emplace_back([&queue, name] {
        for (int i = 0; i < 100; ++i) queue.push(line(std::string(1, name) + std::to_string(i)));
      });
  }
  REQUIRE(queue.wait_until_written(30s));
  std::vector<int> next(4, 0);
  for (const auto& text : reader.lines()) {
    auto& expected = next[static_cast<std::size_t>(text[0] - 'a')];
    CHECK(std::stoi(text.substr(1)) == expected++);
  }
  CHECK(next == std::vector<int>(4, 100));
}

}  // namespace evictd::os::log_queue_test
