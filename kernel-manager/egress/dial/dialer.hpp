// SPDX-License-Identifier: Apache-2.0
//
// From a name to a connection: looked up once, each address judged, and a judged address is what is
// dialled; afterwards the kernel is asked whom it has connected (getpeername(2)). Never: dials a
// name, or an address that was not judged in this very call. io_context thread.
#pragma once

#include "kernel-manager/egress/dial/address.hpp"
#include "kernel-manager/egress/dial/resolver.hpp"
#include "kernel-manager/egress/egress_refusal.hpp"
#include "kernel-manager/egress/limits.hpp"
#include "kernel-manager/egress/target.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::egress {

struct Dialed {
    boost::asio::ip::tcp::socket socket;
    Address address;
};

/// Those that may be dialled, at most addresses_max; kAddressRefused, saying what they are, if
/// none.
Allowed<std::vector<Address>> choose_addresses(
    const Authority& target,
    const std::vector<Address>& found,
    const AddressRules& rules,
    std::size_t addresses_max);

/// One way out as its connection sees it. cancel() ends what dial() is doing for it: no socket is
/// made afterwards, and the one that is being connected closes.
class Dialing {
 public:
    explicit Dialing(std::shared_ptr<LookupAccount> account) : account_(std::move(account)) {}
    Dialing(const Dialing&) = delete;
    Dialing& operator=(const Dialing&) = delete;
    ~Dialing() = default;

    void cancel();
    bool cancelled() const { return cancelled_; }
    const std::shared_ptr<LookupAccount>& account() const { return account_; }

 private:
    friend class Dialer;
    std::shared_ptr<LookupAccount> account_;
    boost::asio::ip::tcp::socket* socket_ = nullptr;  // that is being connected
    bool cancelled_ = false;
};

class Dialer {
 public:
    Dialer(std::shared_ptr<Resolver> resolver, std::vector<AddressRange> permitted)
        : resolver_(std::move(resolver)), permitted_(std::move(permitted)) {}

    /// Whether it may be reached now. An address that is none may not.
    bool may_reach(std::string_view address) const;
    /// kResolve…, kAddressRefused, kConnectFailed, kConnectTimeout; kSessionEnded if it was
    /// cancelled. connect_timeout is for all addresses together: each gets its share of what is
    /// left.
    boost::asio::awaitable<Allowed<std::unique_ptr<Dialed>>> dial(
        boost::asio::any_io_executor executor,
        Authority target,
        ProxyLimits limits,
        std::shared_ptr<Dialing> dialing) const;

 private:
    boost::asio::awaitable<Allowed<std::unique_ptr<Dialed>>> connect(
        boost::asio::any_io_executor executor,
        Authority target,
        std::vector<Address> addresses,
        std::chrono::milliseconds patience,
        std::shared_ptr<Dialing> dialing) const;

    std::shared_ptr<Resolver> resolver_;
    std::vector<AddressRange> permitted_;
};

}  // namespace cellkeep::egress
