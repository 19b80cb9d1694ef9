#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <state.pb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "core/printable.hpp"
#include "os/checksum.hpp"
#include "state/restored_state.hpp"
#include "state/state_file.hpp"
#include "state/state_writer.hpp"
#include "target.hpp"

// What an evictd left for the next one: its content, as bytes and as text, which mutations reach further into; and the
// file around it, with the input written over some part of it.

namespace evictd::fuzz {
namespace {

/// Whatever came is restored to something that is kept and restored as itself.
template <class Message>
void check_kept(const Message& message) {
  const auto kept = state::keep(state::restored(message));
  const auto again = state::keep(state::restored(kept));
  check(kept.DebugString() == again.DebugString(), "kept and restored again it is the same");
}

void check_eviction(const state::v1::Eviction& message) {
  const auto record = state::restored(message);
  if (!record) return;
  check(record->pod != nullptr && record->runtime != nullptr && !record->pod->uid.empty(), "an eviction has a pod");
  const auto kept = state::keep(*record);
  const auto again = state::restored(kept);
  check(again.has_value() && state::keep(*again).DebugString() == kept.DebugString(), "an eviction stays itself");
  check(kept.ByteSizeLong() <= 50 << 10, "whatever a pod brings with it has a bound");
  check(state::keep(*record, state::Detail::Brief).ByteSizeLong() <= 16 << 10, "briefly as well");
  check(state::keep(*record, state::Detail::Least).ByteSizeLong() <= 6 << 10, "and at least");
}

void check_state(const state::v1::AgentState& state) {
  check_kept(state.synchronizer());
  check_kept(state.live_thresholds());
  for (const auto& eviction : state.evictions()) check_eviction(eviction);
  for (const auto& evicted : state.evicted()) check_eviction(evicted.eviction());
}

/// Of text that is none nothing is said.
class Silence : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

/// Until the process ends.
struct Place {
  Place() { check(::mkdtemp(name.data()) != nullptr, "there is room for a file"); }
  ~Place() {
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string name = "/dev/shm/evictd-fuzz-XXXXXX";
};

std::filesystem::path place() {
  static const Place place;
  return place.name;
}

void check_file(std::string_view input) {
  const auto path = place() / "state";
  const auto boot = place() / "boot";
  std::filesystem::remove(path);
  std::ofstream(boot) << "11111111-2222-3333-4444-555555555555\n";
  auto fresh = state::StateFile::open(path, {}, boot);
  check(fresh.has_value(), "it is made");
  check(fresh->file.store("one").has_value() && fresh->file.store("two").has_value(), "it is kept");
  for (const auto* event : {"first", "second"}) {
    auto& events = fresh->file.events();
    events.add(event);
    check(events.write().has_value() && events.save(events.next_mark(1, 1)).has_value(), "events are kept");
  }
  if (input.size() >= 4) {
    // Where it matters: the head, one of the slots' heads, a mark of events, or the events.
    const auto where = os::get_32(input.data());
    constexpr std::size_t slots = 4096;
    constexpr std::array bases{std::size_t{0}, slots, slots + state::StateFile::slot_size,
                               state::SavedEvents::marks_offset, slots + 2 * state::StateFile::slot_size};
    const auto base = bases[where % bases.size()];
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(base + where / bases.size() % 64));
    file << input.substr(4);
  }
  auto found = state::StateFile::open(path, {}, boot);
  check(found.has_value(), "whatever is there, evictd starts");
  check(core::printable(found->remark) == found->remark, "a remark is one line that is safe for a terminal");
  if (const auto mark = found->file.events().read_mark())
    check(found->file.events().read(*mark).size() <= state::SavedEvents::ring_size, "events have an end");
  check(found->file.store("three").has_value(), "it can be used again");
  const auto next = state::StateFile::open(path, {}, boot);
  check(next.has_value() && next->content == "three", "what is kept is found");
}

}  // namespace

void run(std::string_view input) {
  check_file(input);
  state::v1::AgentState state;
  if (state.ParseFromArray(input.data(), static_cast<int>(input.size()))) check_state(state);
  Silence silence;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silence);
  parser.SetRecursionLimit(32);
  if (parser.ParseFromString(std::string(input), &state)) check_state(state);
}

}  // namespace evictd::fuzz
