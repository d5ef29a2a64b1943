// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/listening.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::cli {

namespace {

constexpr std::uint16_t kDefaultPort = 8888;
/// Ports tried after the default one is taken.
constexpr std::uint16_t kPortsTried = 100;
constexpr std::size_t kAddressesMax = 16;

Result<std::unique_ptr<http::Listener>> open_one(
    boost::asio::io_context& io,
    const ListenPlan& plan,
    http::ListenAddress address,
    const http::Application& application,
    const http::AccessLog& log,
    http::InheritedSocket inherited) {
    if (inherited.fd) {
        return http::Listener::create(
            io, address, application, {}, log, plan.tls, std::move(inherited));
    }
    const std::uint16_t last = plan.addresses_given
                                   ? address.port
                                   : static_cast<std::uint16_t>(address.port + kPortsTried);
    for (;;) {
        auto listener = http::Listener::create(io, address, application, {}, log, plan.tls);
        if (listener.has_value() || listener.error().code() != ErrorCode::kConflict ||
            address.port >= last) {
            return listener;
        }
        ++address.port;
    }
}

Result<std::shared_ptr<http::TlsContext>> load_tls(const ServeOptions& options) {
    if (options.tls_cert.has_value() != options.tls_key.has_value()) {
        return Error(ErrorCode::kInvalidArgument, "tls-cert and tls-key belong together");
    }
    if (!options.tls_cert) {
        return std::shared_ptr<http::TlsContext>();
    }
    return http::TlsContext::load(*options.tls_cert, *options.tls_key);
}

/// Sockets that were passed are to be used.
Status plan_passed(const std::vector<http::ListenAddress>& passed, ListenPlan& plan) {
    if (!plan.addresses_given && !passed.empty()) {
        plan.addresses_given = true;
        plan.addresses = passed;
        return ok();
    }
    for (const http::ListenAddress& address : passed) {
        const std::string text = http::to_text(address);
        const bool named =
            std::any_of(plan.addresses.begin(), plan.addresses.end(), [&text](const auto& planned) {
                return http::to_text(planned) == text;
            });
        if (!named) {
            return Error(
                ErrorCode::kInvalidArgument,
                "listen does not name " + text + ", where the service manager listens",
                "Name each address of the socket unit, or leave listen out.");
        }
    }
    return ok();
}

/// What each of so many listeners says when it is done; `done` learns whether all have said yes.
std::function<void(bool)> when_all(std::size_t count, const std::function<void(bool)>& done) {
    struct Together {
        std::size_t left = 0;
        bool all = true;
    };
    const auto together = std::make_shared<Together>(Together{count, true});
    return [together, done](bool one) {
        together->all = together->all && one;
        if (--together->left == 0) {
            done(together->all);
        }
    };
}

}  // namespace

bool ListenPlan::loopback() const {
    return std::all_of(
        addresses.begin(), addresses.end(), [](const auto& address) { return address.loopback; });
}

Result<ListenPlan> plan_listening(
    const ServeOptions& options, const std::vector<http::ListenAddress>& passed) {
    ListenPlan plan;
    plan.addresses_given = options.listen.has_value() && !options.listen->empty();
    if (plan.addresses_given && options.listen->size() > kAddressesMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "listen: at most " + std::to_string(kAddressesMax) + " addresses");
    }
    for (const std::string& text : options.listen.value_or(std::vector<std::string>())) {
        BOOST_OUTCOME_TRY(auto address, http::parse_listen_address(text));
        plan.addresses.push_back(std::move(address));
    }
    BOOST_OUTCOME_TRY(plan_passed(passed, plan));
    if (!plan.addresses_given) {
        http::ListenAddress address;
        address.host = "127.0.0.1";
        address.port = kDefaultPort;
        plan.addresses.push_back(std::move(address));
    }
    BOOST_OUTCOME_TRY(plan.tls, load_tls(options));
    BOOST_OUTCOME_TRY(plan.base_url, http::BaseUrl::parse(options.base_url.value_or("/")));
    BOOST_OUTCOME_TRY(
        plan.origins,
        http::OriginPolicy::create(options.allow_origin.value_or(std::vector<std::string>())));
    plan.trust_unix_socket = options.no_token_on_unix_socket.value_or(false);
    plan.allow_host = options.allow_host.value_or(std::vector<std::string>());
    return plan;
}

http::Application make_application(
    const ListenPlan& plan, const std::string& token, std::vector<http::NamedToken> principals) {
    http::Application application(
        http::TokenAuth(token, std::move(principals)),
        plan.loopback() ? http::HostGuard(plan.allow_host) : http::HostGuard());
    application.set_base_url(plan.base_url);
    application.set_origins(plan.origins);
    if (plan.trust_unix_socket) {
        application.trust_same_user_peers();
    }
    return application;
}

Status try_addresses(
    const ListenPlan& plan, const std::optional<std::vector<std::string>>& passed) {
    boost::asio::io_context io(1);
    // It only binds, and serves no request.
    const http::Application none = make_application(plan, "unused");
    for (const http::ListenAddress& address : plan.addresses) {
        if (passed &&
            std::find(passed->begin(), passed->end(), http::to_text(address)) != passed->end()) {
            continue;
        }
        const auto listener = open_one(io, plan, address, none, {}, {});
        const bool may_be_passed =
            !passed && listener.has_error() && listener.error().code() == ErrorCode::kConflict;
        if (listener.has_error() && !may_be_passed) {
            return listener.error();
        }
    }
    return ok();
}

Result<Listeners> Listeners::open(
    boost::asio::io_context& io,
    const ListenPlan& plan,
    const http::Application& application,
    const http::AccessLog& log,
    InheritedSockets inherited) {
    Listeners all;
    for (const http::ListenAddress& address : plan.addresses) {
        InheritedSockets::Entry entry = inherited.take(http::to_text(address));
        BOOST_OUTCOME_TRY(
            auto listener, open_one(io, plan, address, application, log, std::move(entry.socket)));
        all.places_.push_back({std::move(entry.address), entry.of_manager});
        all.urls_.push_back(
            listener->url() + (address.path.empty() ? plan.base_url.text() : std::string()));
        all.listeners_.push_back(std::move(listener));
    }
    // Programs that read the state directory speak TCP.
    std::stable_partition(all.urls_.begin(), all.urls_.end(), [](const std::string& url) {
        return url.substr(0, 4) == "http";
    });
    return all;
}

void Listeners::start() {
    for (const auto& listener : listeners_) {
        listener->start();
    }
}

void Listeners::pause(
    std::chrono::milliseconds patience,
    http::InPause waiting,
    const std::function<void(bool)>& done) {
    const auto one_done = when_all(listeners_.size(), done);
    for (const auto& listener : listeners_) {
        listener->pause(patience, waiting, one_done);
    }
}

void Listeners::wait_until_empty(
    std::chrono::milliseconds patience, const std::function<void(bool)>& done) {
    const auto one_done = when_all(listeners_.size(), done);
    for (const auto& listener : listeners_) {
        listener->wait_until_empty(patience, one_done);
    }
}

void Listeners::resume() {
    for (const auto& listener : listeners_) {
        listener->resume();
    }
}

std::vector<std::string> Listeners::stuck() const {
    std::vector<std::string> all;
    for (const auto& listener : listeners_) {
        const std::vector<std::string> stuck = listener->stuck();
        all.insert(all.end(), stuck.begin(), stuck.end());
    }
    return all;
}

Result<InheritedSockets> Listeners::pass_on(std::size_t connections_max) {
    InheritedSockets passed;
    for (std::size_t at = 0; at < listeners_.size(); ++at) {
        InheritedSockets::Entry entry;
        entry.address = places_[at].address;
        entry.of_manager = places_[at].of_manager;
        BOOST_OUTCOME_TRY(entry.socket.fd, listeners_[at]->copy_socket());
        BOOST_OUTCOME_TRY(passed.add(std::move(entry)));
    }
    // From here on nothing fails: a path or a connection that is given away does not come back.
    for (std::size_t at = 0; at < listeners_.size(); ++at) {
        http::InheritedSocket& socket = passed.socket(at);
        socket = listeners_[at]->pass_on(std::move(socket.fd), connections_max);
        connections_max -= socket.connections.size();
    }
    return passed;
}

void Listeners::stop(std::chrono::milliseconds patience, const std::function<void()>& stopped) {
    const auto left = std::make_shared<std::size_t>(listeners_.size());
    for (const auto& listener : listeners_) {
        listener->stop(patience, [left, stopped] {
            if (--*left == 0) {
                stopped();
            }
        });
    }
}

}  // namespace cellkeep::cli
