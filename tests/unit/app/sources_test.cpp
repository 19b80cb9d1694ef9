#include "app/sources.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

namespace evictd::app::sources_test {

using namespace std::chrono_literals;

TEST_CASE("switched off there is no trigger for stalls, and a stall of 0 s is none") {
  using wake::PsiLevel;
  config::NotifierSettings settings;
  CHECK(psi_levels(settings) == std::vector<PsiLevel>{{false, 50ms, 500ms}, {true, 25ms, 500ms}});
  settings.psi_some = {};
  CHECK(psi_levels(settings) == std::vector<PsiLevel>{{true, 25ms, 500ms}});
  settings.disable = {config::NotifierSource::Psi};
  CHECK(psi_levels(settings).empty());
}

}  // namespace evictd::app::sources_test
