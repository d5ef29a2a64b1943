// SPDX-License-Identifier: Apache-2.0
//
// Network namespaces made before a sandbox needs one, because the kernel takes up to some
// milliseconds for each. Every one is used once. Owns their descriptors and one thread, started by
// the first take(), that has the launcher make a namespace whenever one was taken; nothing of the
// server's is ever in one. Never retries by itself: after a failure the next take() does.
// Thread-safe. A child of fork(2) gets nothing from it.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace cellkeep::sandbox {

/// How many wait. Each is two descriptors and some 100 KiB of the kernel's memory.
inline constexpr std::size_t kNetworksReadyMax = 4;
/// How long a sandbox waits for one before it makes its own.
inline constexpr std::chrono::milliseconds kNetworkPatience{2000};

/// Loopback is up in it, and a socket listens at kProxyPort until stop_listening().
struct NetworkNamespace {
    UniqueFd descriptor;  // nsfs
    UniqueFd listener;    // non-blocking
    int missing = 0;      // the errno of a bound on its sockets that could not be set
};

/// No connection can be made any more when this returns. A close alone is not enough: a child that
/// another thread is starting holds a copy of every descriptor until its exec, and listens
/// meanwhile.
void stop_listening(UniqueFd listener);

/// By the launcher (network_setup.hpp), in some milliseconds.
Result<NetworkNamespace> make_network_namespace();

class NetworkPool {
 public:
    using Maker = std::function<Result<NetworkNamespace>()>;

    explicit NetworkPool(Maker maker);
    NetworkPool(const NetworkPool&) = delete;
    NetworkPool& operator=(const NetworkPool&) = delete;
    NetworkPool(NetworkPool&&) = delete;
    NetworkPool& operator=(NetworkPool&&) = delete;
    ~NetworkPool();

    /// One that no sandbox has had, at once if one is ready. Otherwise waits for the one being
    /// made: the maker's error, or kTimeout after patience.
    Result<NetworkNamespace> take(std::chrono::milliseconds patience);

    /// Waits until nothing is being made: the pool is full or its last attempt failed. Returns the
    /// number that is ready. For callers that count processes and descriptors.
    std::size_t settle();

    /// Ends the thread and lets go of what is ready; take() then fails. The destructor does it,
    /// too.
    /// False, and nothing is done, in a child of fork(2).
    bool stop();

 private:
    void run();
    bool wants_more() const;

    const pid_t owner_;
    const Maker maker_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<NetworkNamespace> ready_;
    std::optional<Error> failure_;  // of the last attempt; the next take() clears it
    bool stopping_ = false;
    std::thread thread_;
};

/// The server's.
NetworkPool& network_pool();

}  // namespace cellkeep::sandbox
