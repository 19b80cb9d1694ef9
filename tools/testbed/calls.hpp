#pragma once
#include <google/protobuf/message.h>
#include <grpcpp/support/status.h>

#include <memory>

namespace grpc {
class Channel;
}

namespace testbed {

/// Blocking calls to containerd or evictd. Each waits for a connection, a minute at most. Any thread.
class Calls {
 public:
  explicit Calls(std::shared_ptr<grpc::Channel> channel);

  /// The call that the request's type names: a StopContainerRequest is that of StopContainer.
  [[nodiscard]] grpc::Status make(const google::protobuf::Message& request, google::protobuf::Message& response) const;
  /// The same; fails with the server's message.
  template <class Response>
  Response ask(const google::protobuf::Message& request) const {
    Response response;
    answer(request, response);
    return response;
  }

 private:
  void answer(const google::protobuf::Message& request, google::protobuf::Message& response) const;

  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace testbed
