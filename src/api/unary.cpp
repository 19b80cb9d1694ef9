#include "api/unary.hpp"

#include <atomic>
#include <boost/asio/post.hpp>
#include <utility>

namespace asio = boost::asio;

namespace evictd::api {
namespace {

/// One step a turn: it is over when the first step is.
constexpr std::chrono::microseconds one_step{1};

}  // namespace

class UnaryCall final : public grpc::ServerUnaryReactor,
                        public OpenCall,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  UnaryCall(std::shared_ptr<OpenCalls> open, CallBudget::Place place)
      : open_(std::move(open)), place_(std::move(place)) {}

  /// Takes turns until `take` says that it needs no more. On the reactor.
  void work(const std::shared_ptr<events::Turns>& turns, std::function<bool(UnaryCall&)> take) {
    taker_ = std::make_shared<events::Turns::Taker>(
        [weak = weak_from_this(), weak_turns = std::weak_ptr(turns), take = std::move(take)] {
          const auto self = weak.lock();
          const auto turns = weak_turns.lock();
          // Only the reactor ends a call that was posted there: it does not end during a turn but by itself.
          if (self && turns && !self->ended_ && take(*self)) turns->queue(self->taker_);
        });
    turns->queue(taker_);
  }

  void answer(const Fill& fill) {
    // Once ended, the reply is gRPC's again: `fill` must not touch it.
    if (!ended_.exchange(true)) Finish(fill());
  }

  void abort(const grpc::Status& status) override {
    if (!ended_.exchange(true)) Finish(status);
  }

  void OnDone() override {
    const auto open = open_;  // `remove` may destroy this
    open->remove(this);
  }

 private:
  std::shared_ptr<OpenCalls> open_;
  CallBudget::Place place_;
  std::shared_ptr<events::Turns::Taker> taker_;
  std::atomic<bool> ended_ = false;
};

UnaryCalls::UnaryCalls(asio::any_io_executor reactor, std::shared_ptr<OpenCalls> open, CallLimits limits)
    : reactor_(std::move(reactor)),
      open_(std::move(open)),
      budget_(std::make_shared<CallBudget>(limits)),
      turns_(std::make_shared<events::Turns>(reactor_, one_step)) {}

std::expected<CallBudget::Place, grpc::Status> UnaryCalls::admit(const std::string& caller, std::size_t weight) {
  if (auto place = budget_->take(caller, weight)) return place;
  return std::unexpected(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "too many calls are being answered already: try again when some are"));
}

grpc::ServerUnaryReactor* UnaryCalls::answer(CallBudget::Place place, Step step) {
  return begin(std::move(place), [step = std::move(step)](UnaryCall& call) {
    const auto status = step();
    if (status) call.answer([&] { return *status; });
    return !status;
  });
}

grpc::ServerUnaryReactor* UnaryCalls::answer_later(CallBudget::Place place,
                                                   std::function<void(std::function<void(const Fill&)> answer)> begin) {
  return this->begin(std::move(place), [begin = std::move(begin)](UnaryCall& call) {
    begin([call = call.shared_from_this()](const Fill& fill) { call->answer(fill); });
    return false;
  });
}

grpc::ServerUnaryReactor* UnaryCalls::begin(CallBudget::Place place, std::function<bool(UnaryCall&)> take) {
  const auto call = std::make_shared<UnaryCall>(open_, std::move(place));
  if (open_->add(call))
    asio::post(reactor_,
               [call, turns = turns_, take = std::move(take)]() mutable { call->work(turns, std::move(take)); });
  else
    call->abort(shutting_down());
  return call.get();
}

}  // namespace evictd::api
