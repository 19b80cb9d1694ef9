#include "api/user_names.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <future>

namespace evictd::api::user_names_test {
namespace {

using namespace std::chrono_literals;

constexpr auto long_enough = 60s;

TEST_CASE("a user's name is looked up once, and known from then on") {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  UserNames names{long_enough, [asked](uid_t uid) {
                    ++*asked;
                    return uid == 7 ? "seven" : "";
                  }};
  names.prepare(7);
  for (int i = 0; i < 3; ++i) CHECK(names.find(7) == "seven");
  CHECK(*asked == 1);
  CHECK(names.find(8) == "");
  CHECK(names.find(8) == "");
  CHECK(*asked == 2);
}

TEST_CASE("the system knows root") {
  UserNames names{long_enough};
  CHECK(names.find(0) == "root");
}

TEST_CASE("a name service that hangs costs a user its name, once, and nobody the end") {
  const auto release = std::make_shared<std::promise<void>>();
  const auto hung = release->get_future().share();
  const auto done = std::make_shared<std::promise<void>>();
  {
    UserNames names{10ms, [hung, done](uid_t) {
                      hung.wait();
                      done->set_value();
                      return std::string("late");
                    }};
    names.prepare(7);  // returns at once
    CHECK(names.find(7) == "");
    CHECK(names.find(7) == "");
    CHECK(names.find(8) == "");
  }
  CHECK_FALSE(async::left_behind().empty());
  release->set_value();
  done->get_future().wait();  // it touches nothing that is gone
}

}  // namespace
}  // namespace evictd::api::user_names_test
