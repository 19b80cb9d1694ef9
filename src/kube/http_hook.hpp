#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <string>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pre_stop.hpp"

// The GET of a lifecycle hook. (kubelet 1.36: pkg/kubelet/lifecycle/handlers.go, pkg/probe/http/request.go)
namespace evictd::kube {

/// Its bytes (HTTP/1.1). `host`: whom it is sent to. Host, User-Agent and Accept are the hook's own where it says them;
/// fields that frame a message are left out, as a Go client leaves them out. Error: a host, path or header that would
/// not stay in its place, or a port that is no number.
[[nodiscard]] Result<std::string> http_hook_request(const core::HttpGetHook& hook, const std::string& host);

/// Sends it to the hook's host, or to `address` where it names none, and reads the answer as far as 10 KiB. Yields the
/// status, whatever it is: to a kubelet any answer is one. Certificates are not verified, and a redirect is not
/// followed. Ends by `end`, or when it is cancelled, by an exception then.
[[nodiscard]] boost::asio::awaitable<Result<int>> run_http_hook(boost::asio::any_io_executor reactor,
                                                                core::HttpGetHook hook, std::string address,
                                                                core::Instant end);

}  // namespace evictd::kube
