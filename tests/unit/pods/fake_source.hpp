#pragma once
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

}  // namespace evictd::test
