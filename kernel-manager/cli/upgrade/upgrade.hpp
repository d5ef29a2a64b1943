// SPDX-License-Identifier: Apache-2.0
//
// The way from the operator's wish to the moment at which another program can take this one's
// place: the other program is checked, what cannot pass is waited for, clients get their answers.
// Whatever is in the way, the server goes on. Until then nothing is given up that cannot be taken
// back. One at a time. io_context thread only.
#pragma once

#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// How long requests that are being answered may take while new ones wait.
inline constexpr std::chrono::milliseconds kUpgradePausePatience{5000};
/// How often it looks whether what cannot pass has gone.
inline constexpr std::chrono::milliseconds kUpgradeLook{250};

class Upgrade : public std::enable_shared_from_this<Upgrade> {
 public:
    enum class News {
        kRefused,  // the reason follows; the server goes on as it was
        kWaiting,  // for what is named
        kAlready,  // one is under way
        kLeaving,  // for the version that is named
    };
    struct Hooks {
        /// The version of the other program, or why it cannot take over. Blocks, on a thread of
        /// this object's.
        std::function<Result<std::string>()> check;
        /// What cannot pass, by its names.
        std::function<std::vector<std::string>()> in_the_way;
        /// As Listener::pause() and resume(), of all listeners.
        std::function<void(std::chrono::milliseconds, std::function<void(bool)>)> pause;
        std::function<void()> resume;
        /// Nothing is in the way: the server ends for the other program. An error: it goes on.
        std::function<Status()> leave;
        std::function<void(News, const std::vector<std::string>&)> tell;
    };

    static std::shared_ptr<Upgrade> create(
        boost::asio::io_context& io,
        Hooks hooks,
        std::chrono::milliseconds pause_patience = kUpgradePausePatience);
    Upgrade(const Upgrade&) = delete;
    Upgrade& operator=(const Upgrade&) = delete;
    /// Waits for a check that runs.
    ~Upgrade() = default;

    /// The operator asks for it.
    void begin();
    /// The server ends: nothing more happens.
    void stop();

 private:
    Upgrade(boost::asio::io_context& io, Hooks hooks, std::chrono::milliseconds pause_patience);
    boost::asio::awaitable<void> work();
    boost::asio::awaitable<bool> try_once();
    boost::asio::awaitable<bool> wait_for_the_way();
    boost::asio::awaitable<bool> pause();
    void refuse(const Error& why);

    boost::asio::io_context& io_;
    const Hooks hooks_;
    const std::chrono::milliseconds pause_patience_;
    boost::asio::steady_timer look_;
    bool under_way_ = false;
    bool stopped_ = false;
    std::unique_ptr<WorkThread> thread_;  // while one is under way
};

}  // namespace cellkeep::cli
