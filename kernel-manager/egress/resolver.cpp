// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/resolver.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
/// A name server that does not answer must not keep everybody else's names waiting.
constexpr std::size_t kThreads = 4;

}  // namespace

/// Shared between the coroutine that waits and the thread that asks.
struct SystemResolver::Lookup {
    explicit Lookup(asio::io_context& io) : done(io) {}
    asio::steady_timer done;
    bool finished = false;
    boost::system::error_code error;
    Addresses addresses;
};

SystemResolver::SystemResolver(
    asio::io_context& io, std::map<std::string, Address> fixed, std::size_t lookups_max)
    : io_(io), fixed_(std::move(fixed)), lookups_max_(lookups_max), pool_(kThreads) {}

SystemResolver::~SystemResolver() {
    stop();
}

void SystemResolver::stop() {
    pool_.stop();
    pool_.join();
}

asio::awaitable<Allowed<Resolver::Addresses>> SystemResolver::resolve(
    std::string name, std::chrono::milliseconds patience) {
    if (const auto found = fixed_.find(name); found != fixed_.end()) {
        co_return Addresses(1, found->second);
    }
    if (*running_ >= lookups_max_) {
        co_return Refusal{Reason::kResolverBusy, "Too many names are being looked up."};
    }
    ++*running_;
    const auto lookup = std::make_shared<Lookup>(io_);
    asio::post(pool_, [name, lookup, running = running_, &io = io_, &pool = pool_] {
        boost::system::error_code error;
        asio::ip::tcp::resolver of_host(pool);
        Addresses addresses;
        for (const auto& entry : of_host.resolve(name, std::string_view(), error)) {
            addresses.push_back(entry.endpoint().address());
        }
        asio::post(io, [lookup, running, error, found = std::move(addresses)]() mutable {
            --*running;
            lookup->finished = true;
            lookup->error = error;
            lookup->addresses = std::move(found);
            lookup->done.cancel();
        });
    });
    lookup->done.expires_after(patience);
    (void)co_await lookup->done.async_wait(kAwait);  // Ignored: `finished` says which it was.
    if (!lookup->finished) {
        co_return Refusal{Reason::kResolveTimeout, "Looking up " + name + " took too long."};
    }
    if (lookup->error || lookup->addresses.empty()) {
        co_return Refusal{Reason::kResolveFailed, "The name " + name + " has no address."};
    }
    co_return std::move(lookup->addresses);
}

}  // namespace cellkeep::egress
