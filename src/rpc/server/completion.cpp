#include "rpc/server/completion.hpp"

#include "async/thread_name.hpp"

namespace evictd::rpc {
namespace {

void complete_all(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<Completion*>(tag)->complete(ok);
}

}  // namespace

CompletionThread::CompletionThread(grpc::CompletionQueue& queue, const char* name)
    : queue_(queue), thread_([&queue, name] {
        async::name_this_thread(name);
        complete_all(queue);
      }) {}

CompletionThread::~CompletionThread() {
  queue_.Shutdown();
  thread_.join();
}

}  // namespace evictd::rpc
