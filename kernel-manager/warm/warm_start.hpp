// SPDX-License-Identifier: Apache-2.0
//
// The zygotes of one language. A full one, which has imported what sessions mostly import, takes
// seconds to make. A bare one, which has made the interpreter and nothing else, is there in a
// fraction of a second: it serves the sessions that are asked for while the full one is made the
// first time, and then it is let go. Where the full one imports nothing either, it is the only one.
// io_context thread only.
#pragma once

#include "kernel-manager/warm/zygote_keeper.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cellkeep::session {

class WarmStart : public std::enable_shared_from_this<WarmStart> {
 public:
    using ZygotePtr = ZygoteKeeper::ZygotePtr;
    using Make = std::function<Result<ZygotePtr>(const std::function<bool()>& given_up)>;
    struct Hooks {
        /// Both run on threads of their own, at the same time. They block until given_up returns
        /// true, or for as long as they see fit.
        Make make_full;
        Make make_bare;  // may be empty: then a full one is there as fast
        /// Called once: the first attempt to make a full zygote has ended, well or not.
        std::function<void()> on_ready;
        std::function<void(const std::string&)> log;
    };

    static std::shared_ptr<WarmStart> create(
        boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds = {});
    WarmStart(const WarmStart&) = delete;
    WarmStart& operator=(const WarmStart&) = delete;
    ~WarmStart() = default;

    /// Begins to make both, in the background. Call it once.
    void begin();
    /// False while the first full zygote is being made.
    bool ready() const { return ready_; }
    /// A zygote for one fork: the full one, or the bare one until ready(). Before the bare one is
    /// there (the full one if there is no make_bare), this waits for it; how long at most is up to
    /// its maker. Null if there is none.
    boost::asio::awaitable<ZygotePtr> take();
    /// Returns when ready().
    boost::asio::awaitable<void> wait_until_ready();
    /// A session that the zygote made has started.
    void fork_succeeded(const ZygotePtr& zygote);
    /// The zygote did not make what could be made without it: another takes its place.
    void fork_failed(const ZygotePtr& zygote);
    /// Another takes the place of this: lets both go when what they made has no need of them, and
    /// makes no others. Callers that wait go on.
    void retire();
    /// Lets both go and makes no others. Callers that wait go on.
    void stop();

 private:
    WarmStart(boost::asio::io_context& io, Hooks hooks, ZygoteBounds bounds);
    boost::asio::awaitable<void> await_full();

    boost::asio::io_context& io_;
    std::function<void()> on_ready_;
    std::shared_ptr<ZygoteKeeper> full_;
    std::shared_ptr<ZygoteKeeper> bare_;  // or null
    bool ready_ = false;
    bool stopped_ = false;
};

}  // namespace cellkeep::session
