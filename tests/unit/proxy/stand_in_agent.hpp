#pragma once
#include <evictd.grpc.pb.h>
#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace evictd::test {

/// In the agent's stead: serves evictd.v1.EvictionService on a unix socket, of which it knows Admit alone, and answers
/// as the test says. It stands for the agent's word, not for how the agent comes to it.
class StandInAgent {
 public:
  using Answer = std::function<grpc::Status(const v1::AdmitRequest&, v1::AdmitResponse&)>;

  StandInAgent(const std::string& socket, Answer answer);
  ~StandInAgent();
  StandInAgent(const StandInAgent&) = delete;
  StandInAgent& operator=(const StandInAgent&) = delete;

  /// What it was asked.
  [[nodiscard]] std::vector<v1::AdmitRequest> asked() const;

 private:
  class Service final : public v1::EvictionService::Service {
   public:
    explicit Service(StandInAgent& agent) : agent_(agent) {}
    grpc::Status Admit(grpc::ServerContext*, const v1::AdmitRequest* request, v1::AdmitResponse* response) override;

   private:
    StandInAgent& agent_;
  };

  Answer answer_;
  Service service_{*this};
  mutable std::mutex mutex_;
  std::vector<v1::AdmitRequest> asked_;
  std::unique_ptr<grpc::Server> server_;
};

/// Answers for `StandInAgent`.
[[nodiscard]] inline grpc::Status admit(const v1::AdmitRequest&, v1::AdmitResponse& response) {
  response.set_admitted(true);
  return grpc::Status::OK;
}
[[nodiscard]] inline StandInAgent::Answer reject(std::string reason, std::string message) {
  return [reason = std::move(reason), message = std::move(message)](const auto&, v1::AdmitResponse& response) {
    response.set_reason(reason);
    response.set_message(message);
    return grpc::Status::OK;
  };
}

}  // namespace evictd::test
