#include "cri/completion.hpp"

namespace evictd::cri {
namespace {

void complete_all(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<Completion*>(tag)->complete(ok);
}

}  // namespace

CompletionThread::CompletionThread(grpc::CompletionQueue& queue)
    : queue_(queue), thread_([&queue] { complete_all(queue); }) {}

CompletionThread::~CompletionThread() {
  queue_.Shutdown();
  thread_.join();
}

}  // namespace evictd::cri
