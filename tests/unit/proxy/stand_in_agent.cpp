#include "proxy/stand_in_agent.hpp"

#include <grpcpp/server_builder.h>

#include <chrono>
#include <stdexcept>
#include <utility>

namespace evictd::test {

StandInAgent::StandInAgent(const std::string& socket, Answer answer) : answer_(std::move(answer)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service_);
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("no server on " + socket);
}

StandInAgent::~StandInAgent() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::vector<v1::AdmitRequest> StandInAgent::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

grpc::Status StandInAgent::Service::Admit(grpc::ServerContext*, const v1::AdmitRequest* request,
                                          v1::AdmitResponse* response) {
  {
    const std::lock_guard lock(agent_.mutex_);
    agent_.asked_.push_back(*request);
  }
  return agent_.answer_(*request, *response);
}

}  // namespace evictd::test
