// SPDX-License-Identifier: Apache-2.0
//
// The way from the operator's wish to the moment at which another program can take this one's
// place: the other program is checked, what cannot pass is waited for, clients get their answers.
// Whatever is in the way, the server goes on. Until then nothing is given up that cannot be taken
// back. One at a time. io_context thread only.
#pragma once

#include "kernel-manager/cli/upgrade/program_check.hpp"
#include "protocol/support/result.hpp"
#include "protocol/support/work_thread.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// How long what is being answered, and what runs, may take while new requests wait.
inline constexpr std::chrono::milliseconds kUpgradePausePatience{10'000};
/// What works for this part of that time before the pause is long: it is waited for without one.
inline constexpr int kUpgradeShortWorkPart = 10;
/// But no longer than this. Then a pause is tried all the same.
inline constexpr std::chrono::milliseconds kUpgradeUnpausedMost{300'000};
/// How often it looks in that time whether everything is at rest.
inline constexpr std::chrono::milliseconds kUpgradeRestLook{10};
/// How long clients that are asked to connect again may take to leave; new requests wait meanwhile.
inline constexpr std::chrono::milliseconds kUpgradePartingPatience{2'000};
/// After a time that was too short for something, the next one comes when that has ended, this much
/// later at the least; then twice that, and so on.
inline constexpr std::chrono::milliseconds kUpgradeApartFirst{1000};
inline constexpr std::chrono::milliseconds kUpgradeApartMost{300'000};
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
        /// What the other program says of itself, or why it cannot take over. Blocks, on a thread
        /// of this object's, until stop() at most.
        std::function<Result<TakeOverAnswer>(std::stop_token)> check;
        /// Ends what will never pass and is of no use. Called before each look at what is in the
        /// way, once the other program is known to be able to take over.
        std::function<void()> end_lost;
        /// What cannot pass in that format, by its names.
        std::function<std::vector<std::string>(int format)> in_the_way;
        /// What could pass in that format and does something that cannot, by its names.
        std::function<std::vector<std::string>(int format)> at_work;
        /// What runs, and could pass: somebody may wait for it in a request that cannot.
        std::function<std::vector<std::string>()> running;
        /// As Listener::pause(), of all listeners, for a program that reads that format.
        std::function<void(int format, std::chrono::milliseconds, std::function<void(bool)>)> pause;
        /// Asks the clients that a pause leaves connected to come back; learns whether all have
        /// left in time. What they ask for meanwhile is work.
        std::function<void(std::chrono::milliseconds, std::function<void(bool)>)> part;
        /// Ends the pause, and the parting.
        std::function<void()> resume;
        /// Nothing is in the way or at work: the server ends for the other program. An error: it
        /// goes on.
        std::function<Status(int format)> leave;
        std::function<void(News, const std::vector<std::string>&)> tell;
    };

    struct Patience {
        std::chrono::milliseconds pause = kUpgradePausePatience;
        std::chrono::milliseconds apart = kUpgradeApartFirst;
        std::chrono::milliseconds unpaused = kUpgradeUnpausedMost;
    };

    static std::shared_ptr<Upgrade> create(
        boost::asio::io_context& io, Hooks hooks, Patience patience);
    Upgrade(const Upgrade&) = delete;
    Upgrade& operator=(const Upgrade&) = delete;
    /// Waits for the end of a check that runs.
    ~Upgrade() = default;

    /// The operator asks for it.
    void begin();
    /// The server ends: nothing more happens.
    void stop();

 private:
    Upgrade(boost::asio::io_context& io, Hooks hooks, Patience patience);
    boost::asio::awaitable<void> work();
    boost::asio::awaitable<bool> try_once();
    boost::asio::awaitable<std::optional<TakeOverAnswer>> find_a_way();
    boost::asio::awaitable<bool> wait_for_the_way(int format);
    boost::asio::awaitable<bool> wait_for_long_work(int format);
    using Step = std::function<void(std::chrono::milliseconds, std::function<void(bool)>)>;
    boost::asio::awaitable<bool> do_in_time(Step step, std::chrono::milliseconds patience);
    boost::asio::awaitable<bool> part(int format);
    /// What has to come to rest, by its names.
    using Look = std::function<std::vector<std::string>()>;
    Look at_work_for(int format) const {
        return [this, format] { return hooks_.at_work(format); };
    }
    boost::asio::awaitable<void> serve_until_rest(Look look, std::vector<std::string> working);
    boost::asio::awaitable<void> wait_for_rest(Look look);
    boost::asio::awaitable<void> look_again(std::chrono::milliseconds after);
    void refuse(const Error& why);

    boost::asio::io_context& io_;
    const Hooks hooks_;
    const std::chrono::milliseconds pause_patience_;
    const std::chrono::milliseconds unpaused_most_;
    std::chrono::milliseconds apart_;
    boost::asio::steady_timer look_;
    bool under_way_ = false;
    bool stopped_ = false;
    std::stop_source stopping_;           // asked for with stopped_
    std::unique_ptr<WorkThread> thread_;  // while one is under way
};

}  // namespace cellkeep::cli
