// SPDX-License-Identifier: Apache-2.0
//
// Names to addresses, outside the sandbox. Nothing is remembered: whoever asks once dials what it
// was told, so there is no second answer that could differ. io_context thread; SystemResolver waits
// for the C library on threads of its own.
#pragma once

#include "kernel-manager/egress/address.hpp"
#include "kernel-manager/egress/refusal.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::egress {

class Resolver {
 public:
    using Addresses = std::vector<Address>;

    Resolver() = default;
    Resolver(const Resolver&) = delete;
    Resolver& operator=(const Resolver&) = delete;
    virtual ~Resolver() = default;
    /// kResolveFailed, kResolveTimeout, kResolverBusy.
    virtual boost::asio::awaitable<Allowed<Addresses>> resolve(
        std::string name, std::chrono::milliseconds patience) = 0;
    /// No more answers; blocks until lookups that are on their way have ended.
    virtual void stop() {}
};

/// The host's own resolver (getaddrinfo(3)), and names that the operator has fixed.
class SystemResolver final : public Resolver {
 public:
    SystemResolver(
        boost::asio::io_context& io,
        std::map<std::string, Address> fixed,
        std::size_t lookups_max = limits::kEgressLookupsMax);
    ~SystemResolver() override;

    boost::asio::awaitable<Allowed<Addresses>> resolve(
        std::string name, std::chrono::milliseconds patience) override;
    void stop() override;

 private:
    struct Lookup;

    boost::asio::io_context& io_;
    std::map<std::string, Address> fixed_;
    std::size_t lookups_max_;
    std::shared_ptr<std::size_t> running_ = std::make_shared<std::size_t>(0);
    boost::asio::thread_pool pool_;
};

}  // namespace cellkeep::egress
