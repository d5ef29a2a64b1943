// SPDX-License-Identifier: Apache-2.0
//
// Where `cellkeep serve` listens and who may come: addresses, TLS, base URL, other origins. Owns
// the listeners of one server, which all serve the same application.
#pragma once

#include "kernel-manager/cli/serve/serve_config.hpp"
#include "kernel-manager/cli/upgrade/inherited_sockets.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/http/listener.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
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

/// passed: where sockets of the service manager listen; they are what is planned if the options
/// name no address. kInvalidArgument says which option is wrong, names the file that cannot be
/// used, or the address of a socket that the options do not name.
Result<ListenPlan> plan_listening(
    const ServeOptions& options, const std::vector<http::ListenAddress>& passed = {});

/// Gives the application its guards. token: the administrator's; principals: who else may come.
http::Application make_application(
    const ListenPlan& plan,
    const std::string& token,
    std::vector<http::NamedToken> principals = {});

/// Binds each address but those that will be passed, and lets it go. passed: as to_text() has them;
/// without it, an address that is taken already may be one of them.
Status try_addresses(const ListenPlan& plan, const std::optional<std::vector<std::string>>& passed);

class Listeners {
 public:
    /// Binds and listens everywhere, or nowhere. A socket that was inherited serves its address;
    /// one that the plan does not name is closed.
    static Result<Listeners> open(
        boost::asio::io_context& io,
        const ListenPlan& plan,
        const http::Application& application,
        const http::AccessLog& log,
        InheritedSockets inherited = {});

    void start();
    /// As Listener::pause(), wait_until_empty() and resume(), of all.
    void pause(
        std::chrono::milliseconds patience,
        http::InPause waiting,
        const std::function<void(bool)>& done);
    void wait_until_empty(
        std::chrono::milliseconds patience, const std::function<void(bool)>& done);
    void resume();
    /// Listener::stuck(), of all.
    std::vector<std::string> stuck() const;
    /// The sockets, for another program, and up to so many connections. In a pause. After an error
    /// everything is as it was.
    Result<InheritedSockets> pass_on(std::size_t connections_max);
    /// As Listener::stop(), of all.
    void stop(std::chrono::milliseconds patience, const std::function<void()>& stopped);
    /// Each with the base URL ("http://127.0.0.1:8888/user/anna/"); one for programs first.
    const std::vector<std::string>& urls() const { return urls_; }

 private:
    Listeners() = default;
    struct Place {
        std::string address;  // as the plan names it
        bool of_manager = false;
    };
    std::vector<std::unique_ptr<http::Listener>> listeners_;
    std::vector<Place> places_;  // of each
    std::vector<std::string> urls_;
};

}  // namespace cellkeep::cli
