// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/dial/resolver.hpp"

#include "protocol/support/await.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace cellkeep::egress {

namespace asio = boost::asio;

namespace {

Resolver::Addresses ask_host(const std::string& name) {
    set_up_lookup(name);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    // Ignored: no addresses say it too.
    (void)::getaddrinfo(name.c_str(), nullptr, &hints, &list);
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, ::freeaddrinfo);
    Resolver::Addresses addresses;
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
        asio::ip::tcp::endpoint endpoint;
        if (entry->ai_addrlen <= endpoint.capacity()) {
            std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
            addresses.push_back(endpoint.address());
        }
    }
    return addresses;
}

}  // namespace

void set_up_lookup(const std::string& name) {
    if (name.find('.') == std::string::npos || ::res_init() != 0) {
        return;
    }
    // A thread's own (resolver(3)). A dot behind the name would do the same for DNS, but hide it
    // from /etc/hosts.
    _res.options &= ~static_cast<unsigned long>(RES_DNSRCH | RES_DEFNAMES);
}

/// Of one name; io_context thread only.
struct SystemResolver::Lookup {
    Lookup(asio::io_context& io, std::shared_ptr<LookupAccount> of)
        : done(io), account(std::move(of)) {}
    asio::steady_timer done;
    std::shared_ptr<LookupAccount> account;
    bool finished = false;
    Addresses addresses;
};

/// Where threads leave what they have found, as long as the resolver lives.
struct SystemResolver::Answers {
    std::mutex mutex;
    asio::io_context* io = nullptr;  // null: the resolver has gone
    // For a place in their session's account, in order; io_context thread only.
    std::deque<std::weak_ptr<Lookup>> waiting;

    /// A place of this account has become free. All that wait for one look again: a lookup may give
    /// up between being woken and taking the place.
    void wake(const LookupAccount* account) {
        std::erase_if(waiting, [account](const std::weak_ptr<Lookup>& weak) {
            const auto lookup = weak.lock();
            const bool waits = lookup && lookup->account.get() == account;
            if (waits) {
                lookup->done.cancel();
            }
            return waits || !lookup;
        });
    }
};

SystemResolver::SystemResolver(
    asio::io_context& io, std::map<std::string, Address> fixed, std::size_t lookups_max)
    : SystemResolver(io, std::move(fixed), lookups_max, ask_host) {}

SystemResolver::SystemResolver(
    asio::io_context& io,
    std::map<std::string, Address> fixed,
    std::size_t lookups_max,
    LookUp look_up)
    : io_(io),
      fixed_(std::move(fixed)),
      lookups_max_(lookups_max),
      look_up_(std::move(look_up)),
      answers_(std::make_shared<Answers>()) {
    answers_->io = &io;
}

SystemResolver::~SystemResolver() {
    stop();
}

void SystemResolver::stop() {
    const std::lock_guard lock(answers_->mutex);
    answers_->io = nullptr;
}

/// False if there is no thread to be had.
bool SystemResolver::start(const std::string& name, const std::shared_ptr<Lookup>& lookup) {
    // The thread must not be the last to hold the lookup: its timer belongs to the io_context.
    auto work = [name,
                 look_up = look_up_,
                 answers = answers_,
                 running = running_,
                 account = lookup->account,
                 weak = std::weak_ptr(lookup)] {
        Addresses found = look_up(name);
        const std::lock_guard lock(answers->mutex);
        if (answers->io == nullptr) {
            return;
        }
        asio::post(
            *answers->io, [answers, running, account, weak, found = std::move(found)]() mutable {
                --*running;
                --account->running;
                answers->wake(account.get());
                if (const auto waiting = weak.lock()) {
                    waiting->finished = true;
                    waiting->addresses = std::move(found);
                    waiting->done.cancel();
                }
            });
    };
    try {
        std::thread(std::move(work)).detach();
    } catch (const std::system_error&) {
        return false;
    }
    ++*running_;
    ++lookup->account->running;
    return true;
}

asio::awaitable<Allowed<Resolver::Addresses>> SystemResolver::resolve(
    std::string name, std::chrono::milliseconds patience, std::shared_ptr<LookupAccount> account) {
    if (const auto found = fixed_.find(name); found != fixed_.end()) {
        co_return Addresses(1, found->second);
    }
    const auto lookup = std::make_shared<Lookup>(io_, std::move(account));
    lookup->done.expires_after(patience);
    const LookupAccount& of_session = *lookup->account;
    while (of_session.running >= of_session.most &&
           std::chrono::steady_clock::now() < lookup->done.expiry()) {
        answers_->waiting.push_back(lookup);
        (void)co_await lookup->done.async_wait(kAwait);  // Ignored: what there is now counts.
    }
    if (*running_ >= lookups_max_ || of_session.running >= of_session.most) {
        co_return EgressRefusal{Reason::kResolverBusy, "Too many names are being looked up."};
    }
    if (!start(name, lookup)) {
        co_return EgressRefusal{Reason::kResolverBusy, "No more names can be looked up."};
    }
    (void)co_await lookup->done.async_wait(kAwait);  // Ignored: `finished` says which it was.
    if (!lookup->finished) {
        co_return EgressRefusal{Reason::kResolveTimeout, "Looking up " + name + " took too long."};
    }
    if (lookup->addresses.empty()) {
        co_return EgressRefusal{Reason::kResolveFailed, "The name " + name + " has no address."};
    }
    co_return std::move(lookup->addresses);
}

}  // namespace cellkeep::egress
