#include "evictctl/interruption.hpp"

#include <boost/asio/post.hpp>

namespace evictd::ctl {

EndSignals::EndSignals() {
  signals_.async_wait([this](const boost::system::error_code& error, int) { came_ = !error; });
}

bool EndSignals::come_within(std::chrono::milliseconds time) {
  loop_.run_for(time);
  return came_;
}

Interruption::Interruption(grpc::ClientContext& call, std::chrono::milliseconds answer_within)
    : call_(call), no_answer_(loop_, answer_within) {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) cancel(Cause::Signal);
  });
  no_answer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) cancel(Cause::NoAnswer);
  });
  thread_ = std::thread([this] { loop_.run(); });
}

Interruption::~Interruption() {
  loop_.stop();
  thread_.join();
}

void Interruption::answered() {
  boost::asio::post(loop_, [this] { no_answer_.cancel(); });
}

void Interruption::cancel(Cause cause) {
  cause_ = cause;
  call_.TryCancel();
  loop_.stop();
}

}  // namespace evictd::ctl
