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

  void answer(const std::function<grpc::Status()>& answer) {
    // Once ended, the reply is gRPC's again: `answer` must not touch it.
    if (!ended_.exchange(true)) Finish(answer());
  }

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

grpc::ServerUnaryReactor* answer_on(const asio::any_io_executor& reactor, const std::shared_ptr<OpenCalls>& calls,
                                    std::function<grpc::Status()> answer) {
  const auto call = std::make_shared<UnaryCall>(calls);
  if (calls->add(call))
    asio::post(reactor, [call, answer = std::move(answer)] { call->answer(answer); });
  else
    call->abort(shutting_down());
  return call.get();
}

}  // namespace evictd::api
