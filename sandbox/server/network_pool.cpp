// SPDX-License-Identifier: Apache-2.0
#include "sandbox/server/network_pool.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/server/launcher_process.hpp"
#include "sandbox/shared/messages.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace cellkeep::sandbox {

namespace {

constexpr std::chrono::seconds kMakePatience{5};

/// One answer of the launcher's, which must carry a descriptor and be of this kind.
Result<UniqueFd> await_descriptor(
    int control, SetupMessageKind kind, std::chrono::steady_clock::time_point deadline, int& note) {
    SetupMessage message;
    BOOST_OUTCOME_TRY(wait_until_readable(control, deadline));
    BOOST_OUTCOME_TRY(
        auto received, receive_with_fds(control, std::as_writable_bytes(std::span(&message, 1))));
    if (received.bytes != sizeof(message)) {
        return Error(ErrorCode::kSystem, "the launcher ended before it had made a network");
    }
    if (message.kind == SetupMessageKind::kFailed) {
        return Error::from_errno(message.error, step_name(message.step));
    }
    if (message.kind != kind || received.fds.size() != 1) {
        return Error(ErrorCode::kProtocol, "the launcher did not answer with a network");
    }
    note = message.error;
    return std::move(received.fds[0]);
}

Result<NetworkNamespace> await_network(int control) {
    const auto deadline = std::chrono::steady_clock::now() + kMakePatience;
    NetworkNamespace network;
    BOOST_OUTCOME_TRY(
        network.descriptor,
        await_descriptor(control, SetupMessageKind::kNetwork, deadline, network.missing));
    int none = 0;
    BOOST_OUTCOME_TRY(
        network.listener, await_descriptor(control, SetupMessageKind::kListener, deadline, none));
    return network;
}

class ServerPool {
 public:
    ServerPool() = default;
    ServerPool(const ServerPool&) = delete;
    ServerPool& operator=(const ServerPool&) = delete;
    ServerPool(ServerPool&&) = delete;
    ServerPool& operator=(ServerPool&&) = delete;
    ~ServerPool() {
        if (!pool_->stop()) {
            // In a child of fork(2) that ends with exit(3) a destructor would wait for a thread
            // that is not there.
            (void)pool_.release();
        }
    }
    NetworkPool& pool() { return *pool_; }

 private:
    std::unique_ptr<NetworkPool> pool_ = std::make_unique<NetworkPool>(&make_network_namespace);
};

}  // namespace

Result<NetworkNamespace> make_network_namespace() {
    BOOST_OUTCOME_TRY(const auto path, find_launcher(""));
    BOOST_OUTCOME_TRY(auto control, make_socket_pair(SOCK_SEQPACKET));
    const std::array fds{control.second.get()};
    BOOST_OUTCOME_TRY(const auto pid, spawn_launcher(path, kMakeNetwork, fds));
    control.second.reset();
    BOOST_OUTCOME_TRY(const auto handle, open_launcher(pid));
    auto made = await_network(control.first.get());
    // Ignored: it has ended by itself, or its failure is the one to report.
    (void)kill_and_reap(handle, kMakePatience).has_value();
    return made;
}

void stop_listening(UniqueFd listener) {
    // Ignored: ENOTCONN of a socket that does not listen.
    (void)::shutdown(listener.get(), SHUT_RDWR);
}

NetworkPool::NetworkPool(Maker maker) : owner_(::getpid()), maker_(std::move(maker)) {}

NetworkPool::~NetworkPool() {
    (void)stop();  // Ignored: it fails only in a copy that fork(2) made.
}

bool NetworkPool::wants_more() const {
    return !stopping_ && !failure_ && ready_.size() < kNetworksReadyMax;
}

Result<NetworkNamespace> NetworkPool::take(std::chrono::milliseconds patience) {
    if (::getpid() != owner_) {
        return Error(ErrorCode::kUnavailable, "the networks belong to another process");
    }
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::unique_lock lock(mutex_);
    if (stopping_) {
        return Error(ErrorCode::kCancelled, "no network is made any more");
    }
    failure_.reset();
    if (!thread_.joinable()) {
        try {
            thread_ = std::thread(&NetworkPool::run, this);
        } catch (const std::system_error& error) {
            return Error(ErrorCode::kUnavailable, std::string("start a thread: ") + error.what());
        }
    }
    changed_.notify_all();
    changed_.wait_until(lock, deadline, [&] { return !ready_.empty() || failure_ || stopping_; });
    if (!ready_.empty()) {
        NetworkNamespace network = std::move(ready_.front());
        ready_.pop_front();
        changed_.notify_all();
        return network;
    }
    return failure_ ? *failure_ : Error(ErrorCode::kTimeout, "no network was made in time");
}

std::size_t NetworkPool::settle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !thread_.joinable() || !wants_more(); });
    return ready_.size();
}

void NetworkPool::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return stopping_ || wants_more(); });
        if (stopping_) {
            return;
        }
        lock.unlock();
        auto made = maker_();
        lock.lock();
        if (made.has_value()) {
            ready_.push_back(std::move(made).value());
        } else {
            failure_ = std::move(made).error();
        }
        changed_.notify_all();
    }
}

bool NetworkPool::stop() {
    if (::getpid() != owner_) {
        return false;  // A copy that fork(2) made: its thread and its lock are the parent's.
    }
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        ready_.clear();
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
    ready_.clear();
    return true;
}

NetworkPool& network_pool() {
    static ServerPool server;
    return server.pool();
}

}  // namespace cellkeep::sandbox
