#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "evictd.grpc.pb.h"
#include "rpc/server/call_budget.hpp"
#include "rpc/server/completion.hpp"
#include "rpc/server/open_calls.hpp"

namespace evictd::api {

class PreKillStream;

/// gRPC's side of a PreKill call: one write and one read at a time, Finish exactly once and never beside a write.
///
/// As in EventWriter its own rules hold without the reactor, so that a server can end it while the reactor stands
/// still; all else that the queue's thread hears it posts to the PreKillStream. It owns itself until gRPC has told all
/// that it was asked for; OpenCalls has a share from begin() on.
class PreKillCall final : public rpc::OpenCall, public std::enable_shared_from_this<PreKillCall> {
 public:
  using Service = v1::EvictionService::AsyncService;
  /// Given each call on the queue's thread: it either begins it or ends it.
  using Arrived = std::function<void(const std::shared_ptr<PreKillCall>&)>;
  using IntentPtr = std::shared_ptr<const v1::PreKillIntent>;

  /// Takes calls until the server shuts down. `service` and `queue` must outlive the server.
  static void listen(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived);

  /// By `listen` alone.
  PreKillCall(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived);

  [[nodiscard]] const grpc::ServerContext& context() const { return context_; }

  /// `place` is held until the call is over. False: the server shuts down, and the call has ended. On the queue's
  /// thread.
  [[nodiscard]] bool begin(boost::asio::any_io_executor reactor, std::shared_ptr<rpc::OpenCalls> calls,
                           rpc::CallBudget::Place place);
  /// Who is told. On the reactor.
  void attach(std::weak_ptr<PreKillStream> stream) { stream_ = std::move(stream); }

  /// Tells the client that it is registered. On the reactor, once, before the first write.
  void confirm();
  /// Waits for a message; the stream hears `received` afterwards. On the reactor, with no other read under way.
  void read();
  /// Sends one; the stream hears `written` afterwards. On the reactor, with no other write under way.
  void write(IntentPtr intent);
  /// Ends the call, after the write under way if there is one. Later calls do nothing.
  void finish(const grpc::Status& status);
  /// As `finish`, but without waiting for the peer to take the write under way: it sees CANCELLED.
  void cut_off(const grpc::Status& status);

  void abort(const grpc::Status& status) override { finish(status); }

 private:
  using Tag = rpc::OwnCompletion<PreKillCall>;

  // All on the queue's thread.
  void on_arrived(bool ok);
  void on_confirmed(bool ok);
  void on_read(bool ok);
  void on_written(bool ok);
  void on_left(bool ok);
  void on_finished(bool ok);
  /// One of those that were asked for has come.
  void release();
  /// Has the stream told on the reactor, if it is there.
  void tell(std::move_only_function<void(PreKillStream&)> what);

  Service& service_;
  grpc::ServerCompletionQueue& queue_;
  std::shared_ptr<const Arrived> arrived_;
  std::shared_ptr<rpc::OpenCalls> calls_;
  rpc::CallBudget::Place place_;
  std::optional<boost::asio::any_io_executor> reactor_;
  std::weak_ptr<PreKillStream> stream_;  // touched on the reactor only

  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<v1::PreKillIntent, v1::PreKillAnswer> stream_call_{&context_};
  Tag arrived_tag_{*this, &PreKillCall::on_arrived};
  Tag confirmed_tag_{*this, &PreKillCall::on_confirmed};
  Tag read_tag_{*this, &PreKillCall::on_read};
  Tag written_tag_{*this, &PreKillCall::on_written};
  Tag left_tag_{*this, &PreKillCall::on_left};
  Tag finished_tag_{*this, &PreKillCall::on_finished};

  std::mutex mutex_;  // for all that follows
  std::shared_ptr<PreKillCall> self_;
  int asked_for_ = 1;           // of gRPC, and not told yet: that it was left
  v1::PreKillAnswer incoming_;  // gRPC's while a read is under way
  IntentPtr in_flight_;
  std::optional<grpc::Status> last_words_;  // to finish with once the write is done
  bool finished_ = false;
};

}  // namespace evictd::api
