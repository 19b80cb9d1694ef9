#include "api/unary.hpp"

#include <atomic>
#include <boost/asio/post.hpp>
#include <utility>

namespace asio = boost::asio;

namespace evictd::api {
namespace {

class UnaryCall final : public grpc::ServerUnaryReactor, public OpenCall {
 public:
  explicit UnaryCall(std::shared_ptr<OpenCalls> calls) : calls_(std::move(calls)) {}

  void answer(const Fill& fill) {
    // Once ended, the reply is gRPC's again: `fill` must not touch it.
    if (!ended_.exchange(true)) Finish(fill());
  }
  [[nodiscard]] bool ended() const { return ended_; }

  void abort(const grpc::Status& status) override {
    if (!ended_.exchange(true)) Finish(status);
  }

  void OnDone() override {
    const auto calls = calls_;  // `remove` may destroy this
    calls->remove(this);
  }

 private:
  std::shared_ptr<OpenCalls> calls_;
  std::atomic<bool> ended_ = false;
};

}  // namespace

grpc::ServerUnaryReactor* answer_later_on(const asio::any_io_executor& reactor, const std::shared_ptr<OpenCalls>& calls,
                                          std::function<void(std::function<void(const Fill&)> answer)> begin) {
  const auto call = std::make_shared<UnaryCall>(calls);
  if (calls->add(call))
    asio::post(reactor, [call, begin = std::move(begin)] {
      if (!call->ended()) begin([call](const Fill& fill) { call->answer(fill); });
    });
  else
    call->abort(shutting_down());
  return call.get();
}

grpc::ServerUnaryReactor* answer_on(const asio::any_io_executor& reactor, const std::shared_ptr<OpenCalls>& calls,
                                    std::function<grpc::Status()> answer) {
  return answer_later_on(reactor, calls, [fill = std::move(answer)](const auto& answer) { answer(fill); });
}

}  // namespace evictd::api
