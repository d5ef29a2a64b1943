// SPDX-License-Identifier: Apache-2.0
//
// Names to addresses, outside the sandbox. Nothing is remembered: a caller asks once and dials what
// it got, so there is no second answer that could differ. io_context thread; SystemResolver waits
// for the C library on threads of its own.
#pragma once

#include "kernel-manager/egress/dial/address.hpp"
#include "kernel-manager/egress/egress_refusal.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::egress {

/// The lookups of one session. A lookup whose caller no longer waits counts until the C library
/// has given up on it.
struct LookupAccount {
    explicit LookupAccount(std::size_t lookups_max) : most(lookups_max) {}
    std::size_t most;
    std::size_t running = 0;
};

class Resolver {
 public:
    using Addresses = std::vector<Address>;

    Resolver() = default;
    Resolver(const Resolver&) = delete;
    Resolver& operator=(const Resolver&) = delete;
    virtual ~Resolver() = default;
    /// kResolveFailed, kResolveTimeout, kResolverBusy.
    virtual boost::asio::awaitable<Allowed<Addresses>> resolve(
        std::string name,
        std::chrono::milliseconds patience,
        std::shared_ptr<LookupAccount> account) = 0;
    /// No more answers. Does not wait for lookups that are on their way.
    virtual void stop() {}
};

/// Lets getaddrinfo(3) on this thread take a name of several labels as it is: without the search
/// list of resolv.conf(5), by which it could become a name below another domain.
void set_up_lookup(const std::string& name);

/// The host's own resolver (getaddrinfo(3)), and names that the operator has fixed. Each lookup has
/// a thread, so that none waits for another one's name server. The threads hold nothing of this
/// class and nothing of the io_context: stop() leaves them behind, because getaddrinfo(3) cannot be
/// interrupted and may take half a minute.
class SystemResolver final : public Resolver {
 public:
    /// Blocks; on a thread of its own.
    using LookUp = std::function<Addresses(const std::string& name)>;

    SystemResolver(
        boost::asio::io_context& io,
        std::map<std::string, Address> fixed,
        std::size_t lookups_max = limits::kEgressLookupsMax);
    /// With something else in place of getaddrinfo(3).
    SystemResolver(
        boost::asio::io_context& io,
        std::map<std::string, Address> fixed,
        std::size_t lookups_max,
        LookUp look_up);
    SystemResolver(const SystemResolver&) = delete;
    SystemResolver& operator=(const SystemResolver&) = delete;
    SystemResolver(SystemResolver&&) = delete;
    SystemResolver& operator=(SystemResolver&&) = delete;
    ~SystemResolver() override;

    boost::asio::awaitable<Allowed<Addresses>> resolve(
        std::string name,
        std::chrono::milliseconds patience,
        std::shared_ptr<LookupAccount> account) override;
    void stop() override;

 private:
    struct Lookup;
    struct Answers;

    bool start(const std::string& name, const std::shared_ptr<Lookup>& lookup);

    boost::asio::io_context& io_;
    std::map<std::string, Address> fixed_;
    std::size_t lookups_max_;
    LookUp look_up_;
    std::shared_ptr<std::size_t> running_ = std::make_shared<std::size_t>(0);
    std::shared_ptr<Answers> answers_;
};

}  // namespace cellkeep::egress
