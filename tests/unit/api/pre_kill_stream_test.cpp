#include "api/pre_kill_stream.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/running_server.hpp"
#include "os/now.hpp"

namespace evictd::api::pre_kill_stream_test {
namespace {

using namespace std::chrono_literals;
using test::Client;
using test::eventually;
using test::Reactor;
using test::TemporaryDirectory;

/// A server with both sockets. Knows who registered, and keeps what they answer and what is told of changes.
class Guarded final : events::StatusSource, PreKillAgents, Auditor {
 public:
  explicit Guarded(bool asks = true, std::chrono::milliseconds write_timeout = 5s)
      : log_(reactor_.context.get_executor()) {
    ServerOptions options{.socket = socket, .admin_socket = admin_socket};
    options.write_timeout = write_timeout;
    server_ = std::make_unique<Server>(
        std::move(options), log_,
        Handlers{.status = *this, .auditor = this, .pre_kill = asks ? static_cast<PreKillAgents*>(this) : nullptr});
    const auto started = reactor_.run([this] { return server_->start(); });
    REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
  }
  ~Guarded() { shut_down(); }

  void shut_down() {
    reactor_.run([this] { server_.reset(); });
  }
  [[nodiscard]] std::vector<std::string> names() {
    return reactor_.run([this] {
      std::vector<std::string> names;
      for (const auto& agent : agents_) names.push_back(agent->name());
      std::ranges::sort(names);
      return names;
    });
  }
  /// Tells all; how many of them took it.
  std::size_t tell(std::uint64_t id, std::size_t size = 8) {
    auto intent = std::make_shared<v1::PreKillIntent>();
    intent->set_eviction_id(id);
    intent->set_message(std::string(size, 'x'));
    intent->set_deadline_monotonic_ns((os::now() + 1h).time_since_epoch().count());
    return reactor_.run([this, intent] {
      std::size_t took = 0;
      for (const auto& agent : agents_) took += agent->tell(intent) ? 1 : 0;
      return took;
    });
  }
  /// "NAME: ID ERROR", of each.
  [[nodiscard]] std::vector<std::string> answers() {
    return reactor_.run([this] { return answers_; });
  }
  [[nodiscard]] std::vector<v1::Audit> audits() {
    return reactor_.run([this] { return audits_; });
  }

 private:
  v1::NodeStatus status() override { return {}; }
  void add(std::shared_ptr<PreKillAgent> agent) override { agents_.push_back(std::move(agent)); }
  void remove(const PreKillAgent& agent) override {
    std::erase_if(agents_, [&](const auto& known) { return known.get() == &agent; });
  }
  bool answered(const PreKillAgent& agent, const v1::PreKillDone& done) override {
    answers_.push_back(agent.name() + ": " + std::to_string(done.eviction_id()) + " " + done.error());
    return done.eviction_id() == asked_;
  }
  void audit(const v1::Audit& audit) override { audits_.push_back(audit); }

  TemporaryDirectory directory_;

 public:
  const std::string socket = directory_ / "evictd.sock";
  const std::string admin_socket = directory_ / "admin.sock";

 private:
  static constexpr std::uint64_t asked_ = 7;  // what is asked about, all the time
  std::vector<std::shared_ptr<PreKillAgent>> agents_;
  std::vector<std::string> answers_;
  std::vector<v1::Audit> audits_;
  Reactor reactor_;
  events::EventLog log_;
  std::unique_ptr<Server> server_;
};

v1::PreKillAnswer named(const std::string& name) {
  v1::PreKillAnswer answer;
  answer.set_name(name);
  return answer;
}

v1::PreKillAnswer done(std::uint64_t id, const std::string& error = "") {
  v1::PreKillAnswer answer;
  answer.mutable_done()->set_eviction_id(id);
  answer.mutable_done()->set_error(error);
  return answer;
}

/// One call of PreKill.
class Agent {
 public:
  explicit Agent(const std::string& socket) : client_(socket) {
    const auto deadline = std::chrono::system_clock::now() + test::patience;
    REQUIRE(client_.channel->WaitForConnected(deadline));  // calls that wait for that are not begun in their order
    context_.set_deadline(deadline);
    stream_ = client_.stub->PreKill(&context_);
  }
  /// It is registered once the constructor is through, unless the server refused it.
  Agent(const std::string& socket, const std::string& name) : Agent(socket) {
    stream_->Write(named(name));
    stream_->WaitForInitialMetadata();
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent() {
    if (finished_) return;
    context_.TryCancel();
    finish();
  }

  /// Until the server has the call, also where it has no name: what is asked on one connection is taken in turn.
  void wait_until_taken() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + test::patience);
    v1::NodeStatus status;
    REQUIRE(client_.stub->GetNodeStatus(&context, {}, &status).ok());
  }
  bool say(const v1::PreKillAnswer& answer) { return stream_->Write(answer); }
  v1::PreKillIntent hear() {
    v1::PreKillIntent intent;
    REQUIRE(stream_->Read(&intent));
    return intent;
  }
  void say_no_more() { stream_->WritesDone(); }
  void cancel() { context_.TryCancel(); }
  /// Reads what is left and gives the status.
  grpc::Status finish() {
    for (v1::PreKillIntent intent; stream_->Read(&intent);) {
    }
    finished_ = true;
    return stream_->Finish();
  }

 private:
  Client client_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::PreKillAnswer, v1::PreKillIntent>> stream_;
  bool finished_ = false;
};

TEST_CASE("an agent registers by its name, hears what it is asked, and answers; who it is is told once") {
  Guarded guarded;
  Agent agent(guarded.admin_socket, "heap dumper");
  CHECK(guarded.names() == std::vector<std::string>{"heap dumper"});
  CHECK(guarded.tell(7) == 1);
  CHECK(agent.hear().eviction_id() == 7);
  CHECK(agent.say(done(7)));
  CHECK(guarded.tell(7) == 1);
  CHECK(agent.hear().eviction_id() == 7);
  CHECK(agent.say(done(7, "no room")));
  CHECK(eventually([&] { return guarded.answers().size() == 2; }));
  CHECK(guarded.answers() == std::vector<std::string>{"heap dumper: 7 ", "heap dumper: 7 no room"});
  const auto audits = guarded.audits();
  REQUIRE(audits.size() == 1);
  CHECK(audits[0].call() == "PreKill");
  CHECK(audits[0].outcome() == "done");
  CHECK(audits[0].before(0) == "heap dumper: not asked");
  CHECK(audits[0].after(0) == "heap dumper: asked before kills");
  CHECK(audits[0].caller().ends_with("admin.sock"));
}

TEST_CASE("only administrators register, and an attempt is told") {
  Guarded guarded;
  Agent agent(guarded.socket, "spy");
  const auto status = agent.finish();
  CHECK(status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(status.error_message() == "PreKill is for administrators: use admin.sock (" + guarded.admin_socket + ")");
  CHECK(guarded.names().empty());
  const auto audits = guarded.audits();
  REQUIRE(audits.size() == 1);
  CHECK(audits[0].outcome() == "PERMISSION_DENIED: " + status.error_message());
  CHECK(audits[0].after_size() == 0);
}

TEST_CASE("where nobody is asked before a kill the key that changes that is named") {
  Guarded guarded(false);
  Agent agent(guarded.admin_socket, "dumper");
  const auto status = agent.finish();
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(status.error_message().find("eviction.hooks.time") != std::string::npos);
}

TEST_CASE("a name is printable and short, and what follows is answers") {
  Guarded guarded;
  for (const auto& name : {std::string(), std::string("a\nb"), std::string(65, 'x'), std::string("\u202e")}) {
    CAPTURE(name);
    Agent agent(guarded.admin_socket, name);
    CHECK(agent.finish().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  for (const auto& second : {named("again"), v1::PreKillAnswer{}, done(7, std::string(70'000, 'x'))}) {
    Agent agent(guarded.admin_socket, "dumper");
    CHECK(agent.say(second));
    CHECK(agent.finish().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  CHECK(guarded.names().empty());
  CHECK(guarded.answers().empty());
}

TEST_CASE("so many are asked and no more, whether they named themselves or not; who leaves makes room") {
  Guarded guarded;
  std::vector<std::unique_ptr<Agent>> agents;
  for (std::size_t i = 0; i < PreKillLimits{}.streams; ++i)
    agents.push_back(std::make_unique<Agent>(guarded.admin_socket, "agent"));
  CHECK(guarded.names().size() == PreKillLimits{}.streams);
  CHECK(Agent(guarded.admin_socket, "one more").finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  agents.front()->say_no_more();
  CHECK(agents.front()->finish().ok());
  agents.back()->cancel();
  CHECK(eventually([&] { return guarded.names().size() == PreKillLimits{}.streams - 2; }));
  const Agent next(guarded.admin_socket, "next");
  CHECK(guarded.names().size() == PreKillLimits{}.streams - 1);
}

TEST_CASE("answers that nobody waits for are read slowly, and the one that is waited for comes through") {
  Guarded guarded;
  Agent agent(guarded.admin_socket, "flood");
  for (int i = 0; i < 20; ++i) CHECK(agent.say(done(1)));
  CHECK(agent.say(done(7)));
  CHECK(eventually([&] { return guarded.answers().size() == 21; }));
  CHECK(guarded.answers().back() == "flood: 7 ");
  CHECK(guarded.names() == std::vector<std::string>{"flood"});
}

TEST_CASE("an agent that does not read is told no more, and cut off after a while") {
  Guarded guarded(true, 200ms);
  Agent agent(guarded.admin_socket, "deaf");
  bool took = true;
  for (int i = 0; i < 1000 && took; ++i) took = guarded.tell(7, 32 * 1024) == 1;
  CHECK_FALSE(took);
  // That one refusal can be a matter of speed: the transport may have room for all that waits. Soon it has none.
  CHECK(eventually([&] {
    guarded.tell(7, 32 * 1024);
    return guarded.names().empty();
  }));
  CHECK(agent.finish().error_code() == grpc::StatusCode::CANCELLED);
}

TEST_CASE("at a shutdown agents hear that the server goes, those that have not named themselves yet as well") {
  Guarded guarded;
  Agent agent(guarded.admin_socket, "dumper");
  Agent silent(guarded.admin_socket);
  silent.wait_until_taken();
  guarded.shut_down();
  CHECK(agent.finish().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(silent.finish().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(guarded.names().empty());
}

}  // namespace
}  // namespace evictd::api::pre_kill_stream_test
