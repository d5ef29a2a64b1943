// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/dial/dialer.hpp"

#include "kernel-manager/egress/watchdog.hpp"
#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>

#include <set>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

std::optional<Address> read_address(std::string_view text) {
    if (const auto v4 = read_ipv4(text)) {
        return Address(*v4);
    }
    const auto v6 = read_ipv6(text);
    return v6 ? std::optional<Address>(Address(*v6)) : std::nullopt;
}

std::optional<Address> address_in(const Host& host) {
    return host.address ? read_address(host.text) : std::nullopt;
}

/// Whether the socket is connected to exactly this address and port.
bool is_connected_to(const tcp::socket& socket, const tcp::endpoint& endpoint) {
    boost::system::error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    return !error && peer == endpoint;
}

EgressRefusal cancelled() {
    return {Reason::kSessionEnded, "The connection was ended from outside."};
}

/// A socket that can be reached through a pointer, as long as this lives.
class InHand {
 public:
    InHand(tcp::socket*& where, tcp::socket& socket) : where_(where) { where_ = &socket; }
    InHand(const InHand&) = delete;
    InHand& operator=(const InHand&) = delete;
    ~InHand() { where_ = nullptr; }

 private:
    tcp::socket*& where_;
};

}  // namespace

Allowed<std::vector<Address>> choose_addresses(
    const Authority& target,
    const std::vector<Address>& found,
    const AddressRules& rules,
    std::size_t addresses_max) {
    std::vector<Address> chosen;
    std::set<std::string_view> refused;
    for (const Address& address : found) {
        const AddressKind kind = rules.judge(address);
        if (kind != AddressKind::kPublic) {
            refused.insert(to_string(kind));
        } else if (chosen.size() < addresses_max) {
            chosen.push_back(address);
        }
    }
    if (chosen.empty()) {
        std::string kinds;
        for (const std::string_view kind : refused) {
            kinds += (kinds.empty() ? "" : ", ") + std::string(kind);
        }
        return EgressRefusal{
            Reason::kAddressRefused,
            "No address of " + target.host.text + " may be reached (" + kinds + ")."};
    }
    return chosen;
}

void Dialing::cancel() {
    cancelled_ = true;
    if (socket_ != nullptr) {
        boost::system::error_code ignored;  // Ignored: the socket is closed in any case.
        (void)socket_->close(ignored);
    }
}

bool Dialer::may_reach(std::string_view address) const {
    const auto literal = read_address(address);
    auto own = own_addresses();
    return literal && own.has_value() &&
           AddressRules(permitted_, std::move(own).value()).judge(*literal) == AddressKind::kPublic;
}

asio::awaitable<Allowed<std::unique_ptr<Dialed>>> Dialer::dial(
    asio::any_io_executor executor,
    Authority target,
    ProxyLimits limits,
    std::shared_ptr<Dialing> dialing) const {
    std::vector<Address> found;
    if (const auto literal = address_in(target.host)) {
        found.push_back(*literal);
    } else {
        auto resolved = co_await resolver_->resolve(
            target.host.text, limits.resolve_timeout, dialing->account());
        if (dialing->cancelled()) {
            co_return cancelled();
        }
        BOOST_OUTCOME_CO_TRY(found, std::move(resolved));
    }
    auto own = own_addresses();
    if (own.has_error()) {
        co_return EgressRefusal{Reason::kInternal, "The host's own addresses are not known."};
    }
    const AddressRules rules(permitted_, std::move(own).value());
    BOOST_OUTCOME_CO_TRY(
        auto addresses, choose_addresses(target, found, rules, limits.addresses_max));
    co_return co_await connect(
        std::move(executor),
        std::move(target),
        std::move(addresses),
        limits.connect_timeout,
        std::move(dialing));
}

asio::awaitable<Allowed<std::unique_ptr<Dialed>>> Dialer::connect(
    asio::any_io_executor executor,
    Authority target,
    std::vector<Address> addresses,
    std::chrono::milliseconds patience,
    std::shared_ptr<Dialing> dialing) const {
    auto dialed = std::make_unique<Dialed>(Dialed{tcp::socket(executor), Address()});
    const InHand in_hand(dialing->socket_, dialed->socket);
    Watchdog watchdog(executor);
    watchdog.on_expiry([socket = &dialed->socket] {
        boost::system::error_code ignored;  // Ignored: the socket is closed in any case.
        (void)socket->close(ignored);
    });
    const auto ends_at = Watchdog::Clock::now() + patience;
    auto left = static_cast<int>(addresses.size());
    std::string why;
    for (const Address& address : addresses) {
        const tcp::endpoint endpoint(address, target.port);
        boost::system::error_code error;
        (void)dialed->socket.close(error);
        (void)dialed->socket.open(endpoint.protocol(), error);
        const auto rest = ends_at - Watchdog::Clock::now();
        watchdog.arm(std::chrono::duration_cast<std::chrono::milliseconds>(rest / left--));
        if (!error) {
            // Ignored: cannot fail on an open descriptor (fcntl(2)).
            (void)::fcntl(dialed->socket.native_handle(), F_SETFD, FD_CLOEXEC);
            auto [failed] = co_await dialed->socket.async_connect(endpoint, kAwait);
            error = failed;
        }
        if (dialing->cancelled()) {
            co_return cancelled();
        }
        if (watchdog.expired()) {
            why.clear();
            continue;
        }
        if (!error && is_connected_to(dialed->socket, endpoint)) {
            dialed->address = address;
            co_return std::move(dialed);
        }
        why = "connected to another address";
        if (error) {
            why = error.message();
        }
    }
    if (why.empty()) {
        co_return EgressRefusal{
            Reason::kConnectTimeout, to_string(target) + " did not answer in time."};
    }
    co_return EgressRefusal{Reason::kConnectFailed, to_string(target) + ": " + why + "."};
}

}  // namespace cellkeep::egress
