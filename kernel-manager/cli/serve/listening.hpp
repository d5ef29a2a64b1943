// SPDX-License-Identifier: Apache-2.0
//
// Where `cellkeep serve` listens and who may come: addresses, TLS, base URL, other origins. Owns
// the listeners of one server, which all serve the same application.
#pragma once

#include "kernel-manager/cli/serve/serve_config.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/http/listener.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::cli {

struct ListenPlan {
    std::vector<http::ListenAddress> addresses;  // at least one
    bool addresses_given = false;                // else the next free port is as good
    std::shared_ptr<http::TlsContext> tls;       // for the TCP addresses; null: none
    http::BaseUrl base_url;
    http::OriginPolicy origins;
    bool trust_unix_socket = false;
    std::vector<std::string> allow_host;

    /// Only this machine can reach it.
    bool loopback() const;
};

/// kInvalidArgument says which option is wrong, or names the file that cannot be used.
Result<ListenPlan> plan_listening(const ServeOptions& options);

/// Gives the application its guards. token: the administrator's; principals: who else may come.
http::Application make_application(
    const ListenPlan& plan,
    const std::string& token,
    std::vector<http::NamedToken> principals = {});

class Listeners {
 public:
    /// Binds and listens everywhere, or nowhere.
    static Result<Listeners> open(
        boost::asio::io_context& io,
        const ListenPlan& plan,
        const http::Application& application,
        const http::AccessLog& log);

    void start();
    /// As Listener::stop(), of all.
    void stop(std::chrono::milliseconds patience, const std::function<void()>& stopped);
    /// Each with the base URL ("http://127.0.0.1:8888/user/anna/"); one for programs first.
    const std::vector<std::string>& urls() const { return urls_; }

 private:
    Listeners() = default;
    std::vector<std::unique_ptr<http::Listener>> listeners_;
    std::vector<std::string> urls_;
};

}  // namespace cellkeep::cli
