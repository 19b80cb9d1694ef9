#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>

#include "async/worker.hpp"

namespace evictd::async {

/// A Worker with one thread of its own. A thread that a system call holds cannot be ended: it is left to itself when
/// this goes, and ends once the call returns, or with the process. So nothing here waits for it.
///
/// To be made and destroyed on the reactor's thread, and destroyed before the reactor's context.
class SideThread final : public Worker {
 public:
  /// `name`: as ps(1) shows the thread, at most 15 characters. Throws std::system_error where no thread can be had.
  SideThread(boost::asio::any_io_executor reactor, const std::string& name);
  ~SideThread() override;

  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override;

 private:
  struct Shared;   // the thread's as well
  struct Waiting;  // the reactor's alone

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Waiting> waiting_;
};

}  // namespace evictd::async
