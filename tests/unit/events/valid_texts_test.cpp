#include "events/valid_texts.hpp"

#include <doctest/doctest.h>

#include "api/running_server.hpp"
#include "api/temporary_directory.hpp"
#include "core/printable.hpp"
#include "events/kept_log.hpp"
#include "evictd.pb.h"
#include "fixture/random.hpp"
#include "web/feed_text.hpp"

namespace evictd::events::valid_texts_test {
namespace {

using namespace std::string_literals;

/// Bytes that are no UTF-8 at every place where a text of somebody else's may stand.
v1::Event hostile_event(const std::string& text) {
  v1::Event event;
  event.set_kind(v1::Event::EVICTION_INTENDED);
  event.set_message(text);
  event.mutable_pod()->set_name(text);
  event.mutable_wake()->add_reasons("fine");
  event.mutable_wake()->add_reasons(text);
  (*event.mutable_stages())["decided"] = 7;
  auto& detail = *event.mutable_eviction_intended();
  detail.add_ranking()->mutable_pod()->set_uid(text);
  (*detail.mutable_annotations())["offending_containers"] = text;
  (*detail.mutable_annotations())[text] = "value";
  return event;
}

bool can_be_read(const v1::Event& event) { return v1::Event{}.ParseFromString(event.SerializeAsString()); }

const std::vector<std::string> no_texts{"\xff",          "web\xfe",          "\xc0\x80", "\xed\xa0\x80",
                                        "half \xe2\x82", "\xf5\x80\x80\x80", "a\0\xff"s};

}  // namespace

TEST_CASE("what is no UTF-8 becomes readable, what is stays as it is") {
  for (const auto& text : no_texts) {
    CAPTURE(core::printable(text));
    auto event = hostile_event(text);
    make_texts_valid(event);
    CHECK(can_be_read(event));
    CHECK(event.message() == core::printable(text));
    CHECK(event.pod().name() == core::printable(text));
    CHECK(event.wake().reasons(0) == "fine");
    CHECK(event.stages().at("decided") == 7);
    CHECK(event.eviction_intended().annotations().at("offending_containers") == core::printable(text));
    CHECK(event.eviction_intended().annotations().at(core::printable(text)) == "value");
    CHECK(web::events_text({std::make_shared<const v1::Event>(event)}).find("data: {}") == std::string::npos);
  }
  auto good = hostile_event("Größe\n\x1b[2J 大");
  const auto before = good.SerializeAsString();
  make_texts_valid(good);
  v1::Event parsed;
  REQUIRE(parsed.ParseFromString(before));
  CHECK(parsed.message() == good.message());
  CHECK(parsed.eviction_intended().annotations().size() == good.eviction_intended().annotations().size());
}

TEST_CASE("property: an event of whatever bytes can be read once it is recorded") {
  for (const auto seed : fixture::seeds(500)) {
    CAPTURE(seed);
    fixture::Random random{seed};
    std::string text;
    for (auto i = random.between(0, 12); i > 0; --i) text += static_cast<char>(random.between(0, 255));
    auto event = hostile_event(text);
    make_texts_valid(event);
    CHECK(can_be_read(event));
  }
}

TEST_CASE("an event with bytes that are no text is lost neither on a stream nor in the history") {
  {
    test::RunningServer running;
    const test::Client client(running.socket);
    test::Subscriber subscriber(*client.stub, test::new_events());
    for (const auto& text : no_texts) running.reactor.run([&] { running.log.append(hostile_event(text)); });
    for (std::uint64_t number = 1; number <= no_texts.size(); ++number) {
      const auto event = subscriber.read();
      CHECK(event.sequence() == number);
      CHECK(event.pod().name() == core::printable(no_texts[number - 1]));
    }
  }
  const test::TemporaryDirectory directory;
  {
    test::KeptLog kept{directory.path()};
    for (const auto& text : no_texts) kept.append(text);
    kept.turn();
  }
  test::KeptLog again{directory.path()};
  const auto subscription = again.log->subscribe(0, [] {});
  for (const auto& text : no_texts) {
    const auto event = subscription->next();
    REQUIRE(event);
    CHECK(event->kind() == v1::Event::RECOVERED);
    CHECK(event->message() == core::printable(text));
  }
}

}  // namespace evictd::events::valid_texts_test
