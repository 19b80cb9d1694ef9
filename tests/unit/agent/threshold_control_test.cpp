#include "agent/threshold_control.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <fstream>
#include <future>
#include <optional>
#include <sstream>
#include <string>

#include "fixture/node.hpp"
#include "fixture/tree.hpp"

namespace evictd::agent::threshold_control_test {
namespace {

using enum core::Signal;
using fixture::observed;
using fixture::operator""_GiB;

using Lines = std::vector<std::string>;

ThresholdLayers kubelet(core::EvictionSettings::BySignal hard) {
  ThresholdLayers layers;
  layers.base.hard = std::move(hard);
  layers.base.enforce_node_allocatable.clear();
  return layers;
}

config::ThresholdDropIn drop_in(std::string name, core::ThresholdOverlay::BySignal hard) {
  config::ThresholdDropIn result{.name = std::move(name), .overlay = {}};
  result.overlay.hard = std::move(hard);
  return result;
}

v1::UpdateThresholdsRequest set(const std::string& signal, const std::string& value) {
  v1::UpdateThresholdsRequest request;
  auto& change = *request.add_changes();
  change.set_signal(signal);
  change.set_value(value);
  return request;
}

/// What reaches the agent, written down. The node has 8 GiB, 4 GiB of them available.
struct WrittenDown : ThresholdSubject {
  [[nodiscard]] core::Observations observe() const override { return seen; }
  void apply(core::EvictionPolicy policy, std::optional<std::size_t> evictions_within_a_minute) override {
    applied.push_back(core::to_string(policy.thresholds.front()));
    limits.push_back(evictions_within_a_minute.value());
  }
  void report(Lines lines, const std::string& message) override {
    changes.insert(changes.end(), lines.begin(), lines.end());
    messages.push_back(message);
  }

  core::Observations seen = observed({{MemoryAvailable, 4_GiB, 8_GiB}});
  Lines applied{};
  std::vector<std::size_t> limits{};
  Lines changes{};
  Lines messages{};
};

/// A node whose thresholds are changed.
struct Node : WrittenDown {
  explicit Node(ThresholdLayers layers, std::filesystem::path drop_ins = {})
      : Node(std::move(layers),
             {.drop_ins = std::move(drop_ins), .state_file = {}, .max_evictions_after = 3, .watermarks = {}}) {}
  Node(ThresholdLayers layers, const ThresholdControlOptions& options)
      : start{thresholds_at_start(std::move(layers), {}, options, seen)},
        control{{reactor.get_executor(), worker.get_executor(), worker.get_executor()}, start, options, live, *this} {}

  api::Answer<v1::UpdateThresholdsResponse> update(const v1::UpdateThresholdsRequest& request) {
    std::optional<api::Answer<v1::UpdateThresholdsResponse>> answer;
    control.update(request, [&](auto given) { answer = std::move(given); });
    worker_done();
    REQUIRE(answer.has_value());
    return *answer;
  }
  /// The answer that is given before anything is written.
  api::Answer<v1::UpdateThresholdsResponse> immediate(const v1::UpdateThresholdsRequest& request) {
    std::optional<api::Answer<v1::UpdateThresholdsResponse>> answer;
    control.update(request, [&](auto given) { answer = std::move(given); });
    REQUIRE(answer.has_value());
    return *answer;
  }
  std::string refusal(const v1::UpdateThresholdsRequest& request) {
    const auto answer = update(request);
    return answer ? "done" : answer.error().message;
  }
  /// What was written is written, and what follows of it happened.
  void worker_done() {
    boost::asio::thread_pool* pool = &worker;
    std::promise<void> done;
    boost::asio::post(*pool, [&] { done.set_value(); });
    done.get_future().wait();
    reactor.restart();
    reactor.run();
  }

  boost::asio::io_context reactor;
  boost::asio::thread_pool worker{1};
  ThresholdStart start;
  core::ThresholdOverlay live;
  ThresholdControl control;
};

std::string content(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a change by a call is in force at once, told, and capped") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  const auto before = node.control.revision();
  const auto answer = node.update(set("memory.available", "500Mi"));
  REQUIRE(answer.has_value());
  CHECK(node.applied == Lines{"memory.available<500Mi"});
  CHECK(node.limits == std::vector<std::size_t>{3});
  CHECK(node.changes == Lines{"memory.available: 100Mi -> 500Mi"});
  CHECK(answer->changes(0) == "memory.available: 100Mi -> 500Mi");
  CHECK(answer->thresholds().revision() == node.control.revision());
  CHECK(node.control.revision() != before);
  CHECK(answer->thresholds().thresholds(0).source() == "live");
}

TEST_CASE("what would evict at once is refused, and done when one insists") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  auto request = set("memory.available", "5Gi");
  CHECK(node.refusal(request) ==
        "pods would be evicted at once: memory.available<5Gi: 4Gi available; nothing is changed without --yes (force)");
  CHECK(node.applied.empty());
  request.set_validate_only(true);
  const auto asked = node.update(request);
  REQUIRE(asked.has_value());
  CHECK(asked->evict_at_once(0) == "memory.available<5Gi: 4Gi available");
  CHECK(node.applied.empty());
  request.set_validate_only(false);
  request.set_force(true);
  CHECK(node.update(request).has_value());
  CHECK(node.applied == Lines{"memory.available<5Gi"});
}

TEST_CASE("of two who change the same thresholds the second has to look again") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  auto first = set("memory.available", "200Mi");
  first.set_expected_revision(node.control.revision());
  auto second = set("memory.available", "300Mi");
  second.set_expected_revision(node.control.revision());
  CHECK(node.update(first).has_value());
  const auto refused = node.update(second);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == api::RefusalCode::Aborted);
  CHECK(node.applied == Lines{"memory.available<200Mi"});
}

TEST_CASE("wrong requests change nothing and say what is wrong") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  CHECK(node.refusal(set("memory.availble", "1Gi")) ==
        "\"memory.availble\" is no signal; did you mean \"memory.available\"?");
  CHECK(node.refusal(set("memory.available", "5x"))
            .starts_with("evictionHard: memory.available: \"5x\" is not a quantity"));
  CHECK(node.refusal(set("pid.available", "")) == "pid.available: it has no hard threshold that could be removed");
  CHECK(node.refusal({}) == "nothing is to be changed: name a signal and a value, such as memory.available=500Mi");
  auto soft = set("memory.available", "1Gi");
  soft.mutable_changes(0)->set_soft(true);
  CHECK(node.refusal(soft).find("a soft threshold needs a grace period") != std::string::npos);
  auto hard = set("memory.available", "1Gi");
  hard.mutable_changes(0)->mutable_grace_period()->set_seconds(5);
  CHECK(node.refusal(hard).starts_with("memory.available: a grace period belongs to a soft threshold"));
  soft.mutable_changes(0)->mutable_grace_period()->set_seconds(315'576'000'000);  // as long as protobuf's may be
  CHECK(node.refusal(soft) == "memory.available: a grace period is 0 to 1000000000 seconds");
  auto nowhere = set("memory.available", "1Gi");
  nowhere.set_save(true);
  CHECK(node.refusal(nowhere) == "there is nowhere to save them: thresholds.dropIns is \"\"");
  v1::UpdateThresholdsRequest nothing_staged;
  nothing_staged.set_apply_staged(true);
  CHECK(node.refusal(nothing_staged) == "nothing is held back: there is nothing to apply");
  // One wrong change of two, and none is made.
  auto two = set("memory.available", "1Gi");
  *two.add_changes() = set("pid.available", "-3").changes(0);
  CHECK_FALSE(node.update(two).has_value());
  CHECK(node.applied.empty());
  CHECK(node.changes.empty());
}

TEST_CASE("to replace is to take away what is not named") {
  Node node{kubelet({{"memory.available", "100Mi"}, {"pid.available", "100"}})};
  auto request = set("memory.available", "200Mi");
  request.set_replace(true);
  const auto answer = node.update(request);
  REQUIRE(answer.has_value());
  REQUIRE(answer->thresholds().thresholds_size() == 1);
  CHECK(answer->thresholds().thresholds(0).threshold().value() == "200Mi");
}

TEST_CASE("what is saved is in evictd's own drop-in, and the same again once the files are read") {
  const fixture::Tree tree;
  Node node{kubelet({{"memory.available", "100Mi"}}), tree.path("thresholds.d")};
  CHECK(node.update(set("memory.available", "200Mi")).has_value());
  auto request = set("pid.available", "100");
  request.set_save(true);
  const auto answer = node.update(request);
  REQUIRE(answer.has_value());
  CHECK(answer->saved_to() == tree.path("thresholds.d/90-evictctl.yaml").native());
  const auto drop_ins = config::load_threshold_drop_ins(tree.path("thresholds.d"));
  REQUIRE(drop_ins.has_value());
  REQUIRE(drop_ins->size() == 1);
  CHECK(drop_ins->front().overlay.hard ==
        core::ThresholdOverlay::BySignal{{"memory.available", "200Mi"}, {"pid.available", "100"}});
  const auto revision = node.control.revision();
  auto layers = kubelet({{"memory.available", "100Mi"}});
  layers.drop_ins = *drop_ins;
  const auto applied = node.applied.size();
  node.control.reload(std::move(layers));
  CHECK(node.control.revision() == revision);
  CHECK(node.applied.size() == applied);
  CHECK(node.control.describe().thresholds(0).source() == "90-evictctl.yaml");
}

TEST_CASE("what cannot be saved is not changed either") {
  const fixture::Tree tree{{fixture::file("thresholds.d", "a file where the directory should be")}};
  Node node{kubelet({{"memory.available", "100Mi"}}), tree.path("thresholds.d")};
  auto request = set("memory.available", "200Mi");
  request.set_save(true);
  const auto answer = node.update(request);
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().code == api::RefusalCode::Internal);
  CHECK(node.applied.empty());

  // Nor is what was held back forgotten by that.
  node.control.reload(kubelet({{"memory.available", "5Gi"}}));
  v1::UpdateThresholdsRequest apply;
  apply.set_apply_staged(true);
  apply.set_force(true);
  apply.set_save(true);
  CHECK_FALSE(node.update(apply).has_value());
  CHECK(node.control.staged() == Lines{"memory.available: 100Mi -> 5Gi"});
  CHECK(node.applied.empty());
}

TEST_CASE("what a drop-in behind evictd's own would overrule cannot be saved") {
  const fixture::Tree tree;
  auto layers = kubelet({{"memory.available", "100Mi"}});
  layers.drop_ins.push_back(drop_in("99-last.yaml", {{"memory.available", "150Mi"}}));
  Node node{std::move(layers), tree.path()};
  auto request = set("memory.available", "200Mi");
  request.set_save(true);
  CHECK(node.refusal(request) == "90-evictctl.yaml would not hold: a drop-in behind it says otherwise");
}

TEST_CASE("changed files take effect, and hold back what would evict at once until somebody says so") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  node.control.reload(kubelet({{"memory.available", "200Mi"}}));
  CHECK(node.applied == Lines{"memory.available<200Mi"});
  node.control.reload(kubelet({{"memory.available", "5Gi"}}));
  CHECK(node.applied.size() == 1);
  CHECK(node.control.staged() == Lines{"memory.available: 200Mi -> 5Gi"});
  REQUIRE(node.messages.size() == 2);
  CHECK(node.messages.back().find("held back") != std::string::npos);
  node.control.reload(kubelet({{"memory.available", "5Gi"}}));  // the same file again
  CHECK(node.messages.size() == 2);

  v1::UpdateThresholdsRequest apply;
  apply.set_apply_staged(true);
  CHECK(node.refusal(apply).starts_with("pods would be evicted at once"));
  CHECK_FALSE(node.control.staged().empty());
  apply.set_force(true);
  CHECK(node.update(apply).has_value());
  CHECK(node.applied.back() == "memory.available<5Gi");
  CHECK(node.control.staged().empty());
}

TEST_CASE("files that are put right again withdraw what was held back") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  node.control.reload(kubelet({{"memory.available", "5Gi"}}));
  node.control.reload(kubelet({{"memory.available", "100Mi"}}));
  CHECK(node.control.staged().empty());
  CHECK(node.applied.empty());
}

TEST_CASE("a save that hangs is over for its caller, holds up no live change, and counts once it is there") {
  const fixture::Tree tree;
  Node node{
      kubelet({{"memory.available", "100Mi"}}),
      {.drop_ins = tree.path(), .state_file = {}, .watermarks = {}, .save_patience = std::chrono::milliseconds{5}}};
  std::promise<void> answer;
  boost::asio::post(node.worker, [&] { answer.get_future().wait(); });
  auto saving = set("memory.available", "200Mi");
  saving.set_save(true);

  std::optional<api::Answer<v1::UpdateThresholdsResponse>> given;
  node.control.update(saving, [&](auto result) { given = std::move(result); });
  const auto meanwhile = node.immediate(set("memory.available", "300Mi"));
  CHECK(meanwhile.error().message == "another change is being saved: try again");
  while (!given) node.reactor.run_one();
  REQUIRE_FALSE(given->has_value());
  CHECK(given->error().code == api::RefusalCode::DeadlineExceeded);
  CHECK(given->error().message == tree.path("90-evictctl.yaml").native() +
                                      ": its disk did not take it within 5 ms; nothing is changed until it does, and "
                                      "then the file counts as if it were written by hand");
  CHECK(node.applied.empty());

  CHECK(node.immediate(set("memory.available", "300Mi")).has_value());
  CHECK(node.applied == Lines{"memory.available<300Mi"});
  const auto again = node.immediate(saving);
  CHECK(again.error().code == api::RefusalCode::FailedPrecondition);

  answer.set_value();
  node.worker_done();
  CHECK(content(tree.path("90-evictctl.yaml")).find("200Mi") != std::string::npos);
  CHECK(node.applied.size() == 1);
  CHECK(node.update(saving).has_value());
  CHECK(node.applied.back() == "memory.available<200Mi");
}

TEST_CASE("a change that is being saved leaves what files say that are read meanwhile") {
  const fixture::Tree tree;
  Node node{kubelet({{"memory.available", "100Mi"}}), tree.path()};
  std::promise<void> disk;
  boost::asio::post(node.worker, [&] { disk.get_future().wait(); });
  std::optional<api::Answer<v1::UpdateThresholdsResponse>> given;
  const auto save = [&](v1::UpdateThresholdsRequest request) {
    request.set_save(true);
    node.control.update(request, [&](auto result) { given = std::move(result); });
  };

  SUBCASE("both are in force then") {
    save(set("pid.available", "100"));
    node.control.reload(kubelet({{"memory.available", "150Mi"}}));
    CHECK(node.applied == Lines{"memory.available<150Mi"});
    disk.set_value();
    node.worker_done();
    REQUIRE(given.has_value());
    REQUIRE(given->has_value());
    CHECK(node.applied == Lines{"memory.available<150Mi", "memory.available<150Mi"});
    CHECK(node.changes == Lines{"memory.available: 100Mi -> 150Mi", "pid.available: none -> 100"});
    CHECK((*given)->changes_size() == 1);
    CHECK((*given)->thresholds().thresholds_size() == 2);
  }
  SUBCASE("what is held back by then is not what the caller had seen") {
    node.control.reload(kubelet({{"memory.available", "5Gi"}}));
    v1::UpdateThresholdsRequest apply;
    apply.set_apply_staged(true);
    apply.set_force(true);
    save(apply);
    node.control.reload(kubelet({{"memory.available", "6Gi"}}));
    disk.set_value();
    node.worker_done();
    REQUIRE(given.has_value());
    REQUIRE_FALSE(given->has_value());
    CHECK(given->error().code == api::RefusalCode::Aborted);
    CHECK(given->error().message == tree.path("90-evictctl.yaml").native() +
                                        ": it is written, but other files changed meanwhile; nothing is changed until "
                                        "all are read anew, and then the file counts as if it were written by hand");
    CHECK(node.applied.empty());
    CHECK(node.control.staged() == Lines{"memory.available: 100Mi -> 6Gi"});
  }
}

TEST_CASE("a live change stays on top of files that change") {
  Node node{kubelet({{"memory.available", "100Mi"}, {"pid.available", "100"}})};
  CHECK(node.update(set("memory.available", "300Mi")).has_value());
  node.control.reload(kubelet({{"memory.available", "200Mi"}, {"pid.available", "200"}}));
  CHECK(node.applied.back() == "memory.available<300Mi");
  CHECK(node.changes.back() == "pid.available: 100 -> 200");
}

TEST_CASE("files that cannot be used are refused once, with their column, and nothing changes") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  const Error error{.message = "agent.yaml:12: notifier.memgc: unknown key", .column = 3};
  node.control.refuse_files(error);
  node.control.refuse_files(error);
  CHECK(node.messages == Lines{"the configuration is refused, and the old one stays: agent.yaml:12: notifier.memgc: "
                               "unknown key (column 3)"});
  CHECK(node.control.warnings().size() == 1);
  node.control.reload(kubelet({{"memory.available", "100Mi"}}));
  CHECK(node.control.warnings().empty());
  CHECK(node.applied.empty());
}

TEST_CASE("values that cannot be used are refused once however often they are read, and again once others were good") {
  Node node{kubelet({{"memory.available", "100Mi"}})};
  const auto bad = kubelet({{"memory.available", "lots"}});
  CHECK_FALSE(node.control.reload(bad));
  CHECK_FALSE(node.control.reload(bad));
  CHECK(node.messages.size() == 1);
  CHECK(node.control.warnings().size() == 1);
  node.control.reload(kubelet({{"memory.available", "100Mi"}}));
  CHECK(node.control.warnings().empty());
  CHECK_FALSE(node.control.reload(bad));
  CHECK(node.messages.size() == 2);
}

TEST_CASE("a start with other thresholds than the last run is noticed") {
  const fixture::Tree tree;
  const ThresholdControlOptions options{
      .drop_ins = {}, .state_file = tree.path("state.yaml"), .max_evictions_after = 3, .watermarks = {}};
  {
    Node first{kubelet({{"memory.available", "100Mi"}}), options};
    CHECK(first.start.evictions_in_first_minute == 0);
    first.worker_done();
  }
  CHECK(content(tree.path("state.yaml")).find("memory.available: \"100Mi\"") != std::string::npos);
  {
    Node same{kubelet({{"memory.available", "100Mi"}}), options};
    CHECK(same.start.evictions_in_first_minute == 0);
    same.worker_done();
  }
  SUBCASE("others that evict nobody are in force, with a cap") {
    Node other{kubelet({{"memory.available", "200Mi"}}), options};
    CHECK(other.start.evictions_in_first_minute == 3);
    CHECK(core::to_string(other.control.policy_in_force().thresholds.front()) == "memory.available<200Mi");
    other.worker_done();
  }
  SUBCASE("others that evict at once are held back") {
    Node other{kubelet({{"memory.available", "5Gi"}}), options};
    CHECK(core::to_string(other.control.policy_in_force().thresholds.front()) == "memory.available<100Mi");
    CHECK(other.control.staged() == Lines{"memory.available: 100Mi -> 5Gi"});
    CHECK(other.control.describe().thresholds(0).source() == "thresholds of the last run");
    other.worker_done();
  }
  SUBCASE("a state file that is none is passed over") {
    tree.write("state.yaml", "nonsense: [");
    Node other{kubelet({{"memory.available", "5Gi"}}), options};
    CHECK(other.control.staged().empty());
    CHECK(other.start.evictions_in_first_minute == 0);
    other.worker_done();
  }
}

TEST_CASE("thresholds that stand for those that could not be found are neither kept nor compared with") {
  const fixture::Tree tree;
  const ThresholdControlOptions options{
      .drop_ins = {}, .state_file = tree.path("thresholds.yaml"), .max_evictions_after = 3, .watermarks = {}};
  auto guess = kubelet({{"memory.available", "100Mi"}});
  guess.is_known = false;
  SUBCASE("those that are found take their place at once") {
    Node node{guess, options};
    node.worker_done();
    CHECK_FALSE(std::filesystem::exists(options.state_file));
    node.control.reload(kubelet({{"memory.available", "5Gi"}}));  // of 4 GiB
    CHECK(node.applied == Lines{"memory.available<5Gi"});
    CHECK(node.control.staged().empty());
    node.worker_done();
    CHECK(content(options.state_file).find("5Gi") != std::string::npos);
  }
  SUBCASE("where it is known what was in force before, that does, and what is found is compared with it") {
    Node{kubelet({{"memory.available", "1Gi"}}), options}.worker_done();
    Node node{guess, options};
    CHECK(core::to_string(node.control.policy_in_force().thresholds.front()) == "memory.available<1Gi");
    CHECK_FALSE(node.control.reload(kubelet({{"memory.available", "5Gi"}})));
    CHECK(node.applied.empty());
    CHECK_FALSE(node.control.staged().empty());
  }
  SUBCASE("also where the guess happens to be the same") {
    Node{kubelet({{"memory.available", "100Mi"}}), options}.worker_done();
    Node node{guess, options};
    CHECK_FALSE(node.control.reload(kubelet({{"memory.available", "5Gi"}})));
    CHECK_FALSE(node.control.staged().empty());
  }
  SUBCASE("what calls changed before need not go with the guess") {
    auto soft = kubelet({{"memory.available", "100Mi"}});
    soft.base.soft = {{"memory.available", "1Gi"}};
    soft.base.soft_grace_period = {{"memory.available", "1m"}};
    Node{soft, options}.worker_done();
    core::ThresholdOverlay live;
    live.soft["memory.available"] = "2Gi";  // its grace is in the file
    const auto start = thresholds_at_start(guess, live, options, {});
    CHECK(start.live == live);
    CHECK(start.policy.thresholds.size() == 2);
  }
  SUBCASE("what calls changed on top of a guess does not keep it in force") {
    guess.base.soft = {{"memory.available", "1Gi"}};
    guess.base.soft_grace_period = {{"memory.available", "1m"}};
    Node node{guess, options};
    auto request = set("memory.available", "2Gi");
    request.mutable_changes(0)->set_soft(true);
    REQUIRE(node.update(request).has_value());
    node.applied.clear();
    node.control.reload(kubelet({{"memory.available", "200Mi"}}));  // it has no grace for 2Gi
    CHECK(node.applied == Lines{"memory.available<200Mi"});
    CHECK(node.live.empty());
    CHECK(node.control.warnings().empty());
    CHECK(std::ranges::count(node.messages,
                             "what was changed by calls does not go with the configuration that was found, "
                             "and is forgotten") == 1);
    node.worker_done();
  }
}

TEST_CASE("while the thresholds of the last run stand for the files nothing is saved on top of those") {
  const fixture::Tree tree{fixture::dir("thresholds.d")};
  const ThresholdControlOptions options{.drop_ins = tree.path("thresholds.d"),
                                        .state_file = tree.path("thresholds.yaml"),
                                        .max_evictions_after = 3,
                                        .watermarks = {}};
  Node{kubelet({{"memory.available", "1Gi"}}), options}.worker_done();
  auto request = set("memory.available", "500Mi");
  request.set_save(true);
  const auto is_refused = [&](Node& node) {
    CHECK(node.refusal(request).starts_with("nothing can be saved while the thresholds of the last run stand for"));
    CHECK(std::filesystem::is_empty(options.drop_ins));
    CHECK(node.applied.empty());
  };
  SUBCASE("which are not known") {
    auto guess = kubelet({{"memory.available", "100Mi"}});
    guess.is_known = false;
    Node node{guess, options};
    is_refused(node);
  }
  SUBCASE("which are held back") {
    Node node{kubelet({{"memory.available", "5Gi"}}), options};
    is_refused(node);
    request = set("memory.available", "500Mi");
    CHECK(node.refusal(request) == "done");
  }
}

TEST_CASE("a file that changes nothing is not applied, one that changes periods alone is, once") {
  Node node{kubelet({{"memory.available", "1Gi"}})};
  CHECK_FALSE(node.control.reload(kubelet({{"memory.available", "1Gi"}})));
  auto slower = kubelet({{"memory.available", "1Gi"}});
  slower.base.pressure_transition_period = std::chrono::minutes(7);
  CHECK(node.control.reload(slower));
  CHECK(node.limits.size() == 1);
}

TEST_CASE("at a start nothing is said of disks that are not measured yet, but of all else that is doubtful") {
  Node node{kubelet({{"nodefs.available", "10%"}, {"imagefs.available", "15%"}, {"pid.available", "10%"}})};
  const std::string unmeasured = ": it cannot fire while the signal is not measured on this node";
  CHECK(node.control.warnings_at_start() == Lines{"pid.available<10%" + unmeasured});
  CHECK(node.control.warnings().size() == 3);
  node.seen = observed({{NodefsAvailable, 4_GiB, 8_GiB}, {ImagefsAvailable, 0, 0}, {PidAvailable, 1, 9}});
  CHECK(node.control.warnings_at_start() == node.control.warnings());
}

}  // namespace evictd::agent::threshold_control_test
