#pragma once
#include <string>
#include <utility>
#include <vector>

#include "pods/spec_source.hpp"

namespace evictd::test {

/// A source that says what a test tells it to.
class FakeSource final : public pods::SpecSource {
 public:
  using SpecSource::SpecSource;
  void look() override { ++looks; }

  void say(core::PodList list) { heard(std::make_shared<const core::PodList>(std::move(list))); }
  void fail(std::string why) { lost({std::move(why)}); }
  void complain(std::vector<Error> errors) { cannot_read(std::move(errors)); }

  int looks = 0;
  bool running = false;

 private:
  void begin() override { running = true; }
  void end() override { running = false; }
};

/// Notes what sources tell.
struct HeardSpecs : pods::SpecListener {
  int changes = 0;
  std::vector<std::string> degraded{};
  std::vector<std::string> unreadable{};
  std::vector<std::string> told{};  ///< both, in their order

  void specs_changed() override { ++changes; }
  void spec_source_degraded(pods::SpecOrigin origin, const Error& error) override {
    degraded.push_back(std::string(name(origin)) + ": " + error.message);
    told.push_back("stale: " + error.message);
  }
  void spec_unreadable(pods::SpecOrigin /*origin*/, const Error& error) override {
    unreadable.push_back(error.message);
    told.push_back(error.message);
  }
};

}  // namespace evictd::test
