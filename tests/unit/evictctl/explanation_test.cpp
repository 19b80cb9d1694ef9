#include "evictctl/answers.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

namespace evictd::ctl::explanation_test {
namespace {

constexpr std::int64_t mebi = 1 << 20;

v1::Event event(v1::Event::Kind kind, std::uint64_t sequence, const std::string& signal = "memory.available") {
  v1::Event result;
  result.set_kind(kind);
  result.set_sequence(sequence);
  result.set_eviction_id(7);
  result.mutable_time()->set_seconds(1'000'000'000);
  result.set_signal(signal);
  result.mutable_pod()->set_namespace_("default");
  result.mutable_pod()->set_name("hog");
  result.mutable_pod()->set_uid("uid-of-hog");
  return result;
}

void add_ranked(v1::RankedPod& ranked, const std::string& name, std::int64_t usage, std::int64_t request) {
  ranked.mutable_pod()->set_namespace_("default");
  ranked.mutable_pod()->set_name(name);
  ranked.mutable_pod()->set_uid("uid-of-" + name);
  ranked.set_usage(usage);
  ranked.set_request(request);
}

v1::Event intended(const std::string& signal = "memory.available", const std::string& unit = "bytes") {
  auto result = event(v1::Event::EVICTION_INTENDED, 7, signal);
  auto& intent = *result.mutable_eviction_intended();
  intent.mutable_threshold()->set_signal(signal);
  intent.mutable_threshold()->set_unit(unit);
  intent.mutable_threshold()->set_value("300Mi");
  intent.mutable_observation()->set_available(280 * mebi);
  intent.mutable_observation()->set_capacity(1024 * mebi);
  intent.set_candidates(3);
  add_ranked(*intent.add_ranking(), "vital", 0, 0);
  intent.mutable_ranking(0)->set_critical(true);
  add_ranked(*intent.add_ranking(), "hog", 700 * mebi, 0);
  add_ranked(*intent.add_ranking(), "chill", 64 * mebi, 32 * mebi);
  return result;
}

v1::Event explained() {
  auto result = event(v1::Event::EXPLAINED, 9);
  auto& why = *result.mutable_explained()->mutable_why();
  why.mutable_short_since()->set_seconds(999'999'998);
  why.set_standing("best effort, uses 700Mi");
  add_ranked(*why.mutable_next(), "chill", 64 * mebi, 32 * mebi);
  why.mutable_next()->set_why("uses 32Mi more than it asked for");
  why.set_rule("it was further over its request: by 700.0 MiB, not 32.0 MiB");
  why.add_saved_by("a memory request of at least 669Mi: default/chill would have gone in its place");
  auto& seen = *result.mutable_explained()->mutable_snapshot();
  seen.mutable_taken_before_kill()->set_nanos(350'000'000);
  seen.set_usage(710 * mebi);
  auto& first = *seen.add_processes();
  first.set_command("postgres");
  first.set_rss(680 * mebi);
  first.set_anon(600 * mebi);
  first.set_shmem(70 * mebi);
  auto& second = *seen.add_processes();
  second.set_command("s\x1bh");
  second.set_rss(4 * mebi);
  auto& row = *seen.add_memory();
  row.set_name("anon");
  row.set_bytes(604 * mebi);
  seen.set_staying(8 * mebi);
  for (const auto& [before, bytes] : {std::pair{6, 100 * mebi}, std::pair{1, 710 * mebi}}) {
    auto& sample = *seen.add_pod_usage();
    sample.mutable_before_kill()->set_seconds(before);
    sample.set_bytes(bytes);
  }
  seen.mutable_node_stall()->set_some_avg10(12.5);
  return result;
}

Story with_end(Story story) {
  auto killed = event(v1::Event::CONTAINERS_KILLED, 8);
  killed.mutable_containers_killed()->set_method("cgroup.kill");
  auto released = event(v1::Event::MEMORY_RELEASED, 10);
  released.mutable_memory_released()->set_released_bytes(690 * mebi);
  auto cleaned = event(v1::Event::CLEANUP_DONE, 11);
  cleaned.mutable_cleanup_done()->mutable_duration()->set_nanos(420'000'000);
  story.events.insert(story.events.end(), {killed, released, cleaned});
  return story;
}

std::string text_of(const Story& story) {
  std::ostringstream out;
  print_story(out, story, {.width = 200});
  return out.str();
}

/// What follows the heading, whose time is the local one.
std::string body_of(const Story& story) {
  const auto text = text_of(story);
  return text.substr(text.find('\n') + 1);
}

TEST_CASE("an eviction is told in words: the shortage, the choice, what would have saved it, what it held, the end") {
  const auto story = with_end({.id = 7, .events = {intended(), explained()}});
  CHECK(text_of(story).starts_with("default/hog was evicted for memory.available on "));
  const auto since = time_text(TimePoint(std::chrono::seconds(999'999'998)));
  CHECK(body_of(story) == R"(
What was short
  memory.available: 280Mi of 1Gi were available, less than 300Mi
  since )" + since + R"(, 2s before it was chosen

Why this pod and not the next
  default/hog (uses 700Mi, requests nothing, priority 0): best effort, uses 700Mi
  next: default/chill (uses 64Mi, requests 32Mi, priority 0): uses 32Mi more than it asked for
  what decided: it was further over its request: by 700.0 MiB, not 32.0 MiB

What would have saved it
  - a memory request of at least 669Mi: default/chill would have gone in its place

What it held, 350ms before the kill: 710Mi
  PROCESS     RSS   ANON  SHMEM
  postgres  680Mi  600Mi  70Mi
  s\x1bh      4Mi      0  0
  memory.stat: anon 604Mi
  the pod went from 100Mi to 710Mi within 5s
  the node waited for memory: some tasks 12.5% of 10s and 0.0% of 60s, all 0.0% and 0.0%

What came back, and what did not
  killed by cgroup.kill
  memory back: 690Mi; not back by then: 20Mi, as file cache and shared memory are not, until somebody needs them or the pod's volumes go
  in a tmpfs, until its volumes are removed: 8Mi
  cleaned up after 420ms
)");
}

TEST_CASE("without an explanation the ranking and the crossing tell what they know, for what is counted as well") {
  Story story{.id = 7, .events = {intended("pid.available", "pids")}};
  auto& intent = *story.events[0].mutable_eviction_intended();
  intent.mutable_observation()->set_available(90);
  intent.mutable_observation()->set_capacity(1000);
  intent.mutable_threshold()->set_value("100");
  intent.mutable_ranking(1)->set_usage(800);
  intent.mutable_ranking(2)->set_usage(3);
  story.short_since = TimePoint(std::chrono::seconds(999'999'999));
  const auto text = body_of(story);
  CAPTURE(text);
  CHECK(text.find("  pid.available: 90 of 1000 were available, less than 100\n") != std::string::npos);
  CHECK(text.find(", 1s before it was chosen\n") != std::string::npos);
  CHECK(text.find("  default/hog (uses 800, requests nothing, priority 0)\n") != std::string::npos);
  CHECK(text.find("  next: default/chill (uses 3, requests 32Mi, priority 0)\n") != std::string::npos);
  CHECK(text.find("What it held") == std::string::npos);
  CHECK(text.find("  it is not known to have been killed\n  its cleanup is not known to have ended\n") !=
        std::string::npos);
}

TEST_CASE("a snapshot from after the kill says so, and nothing is reckoned from it") {
  auto after = explained();
  after.mutable_explained()->mutable_snapshot()->mutable_taken_before_kill()->set_nanos(-3'000'000);
  const auto text = body_of(with_end({.id = 7, .events = {intended(), after}}));
  CHECK(text.find("What it held, 3ms after the kill: 710Mi\n") != std::string::npos);
  CHECK(text.find("  memory back: 690Mi\n") != std::string::npos);
}

TEST_CASE("of a dry run, of a failure and of a cleanup that timed out it is said") {
  auto dry = intended();
  dry.mutable_eviction_intended()->set_dry_run(true);
  CHECK(body_of({.id = 7, .events = {dry}}).find("this was a dry run: nothing was done to it\n") != std::string::npos);

  auto failed = event(v1::Event::EVICTION_FAILED, 8);
  failed.set_message("default/hog: StopContainer: no\nanswer");
  auto cleaned = event(v1::Event::CLEANUP_DONE, 9);
  cleaned.set_message("default/hog: gave up waiting for its cleanup: the sandbox");
  cleaned.mutable_cleanup_done()->set_timed_out(true);
  const auto text = body_of({.id = 7, .events = {intended(), failed, cleaned}});
  CHECK(text.find("  default/hog: gave up waiting for its cleanup: the sandbox\n") != std::string::npos);
  CHECK(text.find("  failed: default/hog: StopContainer: no\\nanswer\n") != std::string::npos);
}

TEST_CASE("what is known when the intent is no longer remembered is told, within the width") {
  std::ostringstream out;
  print_story(out, with_end({.id = 7, .events = {explained()}}), {.width = 60});
  std::istringstream lines(out.str());
  std::string line;
  std::getline(lines, line);  // the heading is one line
  while (std::getline(lines, line)) CHECK(columns(line) <= 60);
  CHECK(out.str().find("killed by cgroup.kill") != std::string::npos);
}

}  // namespace
}  // namespace evictd::ctl::explanation_test
