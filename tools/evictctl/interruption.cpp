#include "evictctl/interruption.hpp"

namespace evictd::ctl {

EndSignals::EndSignals() {
  signals_.async_wait([this](const boost::system::error_code& error, int) { came_ = !error; });
}

bool EndSignals::come_within(std::chrono::milliseconds time) {
  loop_.run_for(time);
  return came_;
}

Interruption::Interruption(grpc::ClientContext& call, std::chrono::milliseconds answer_within)
    : call_(call), thread_([this, answer_within] { watch(answer_within); }) {}

Interruption::~Interruption() {
  over_ = true;
  signals_.stop();
  thread_.join();
}

void Interruption::watch(std::chrono::milliseconds answer_within) {
  constexpr std::chrono::hours a_day{24};
  bool came = signals_.come_within(answer_within);
  while (!came && !over_ && answered_) came = signals_.come_within(a_day);
  if (over_ && !came) return;
  cause_ = came ? Cause::Signal : Cause::NoAnswer;
  call_.TryCancel();
}

}  // namespace evictd::ctl
