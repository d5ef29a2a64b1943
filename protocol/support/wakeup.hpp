// SPDX-License-Identifier: Apache-2.0
//
// A coroutine that waits until a callback wakes it. It goes on when the handler that the callback
// is part of has done its work (Wakeups::Turn), on an empty stack. Without a Turn it goes on in a
// later turn of the event loop, which costs a system call more. io_context thread only.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace cellkeep {

/// The coroutines of one io_context that wait so: boost::asio::use_service<Wakeups>(io). Owns them,
/// so that one that still waits goes when the io_context does.
class Wakeups final : public boost::asio::execution_context::service {
 public:
    // Asio finds the service by it.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    inline static boost::asio::execution_context::id id;

    /// A coroutine that is woken while there is a Turn goes on at the end of the outermost one. A
    /// handler makes it before all else, so that nothing of the handler's is half done then.
    class Turn {
     public:
        explicit Turn(Wakeups& wakeups) : wakeups_(wakeups) { ++wakeups_.turns_; }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        ~Turn() {
            if (wakeups_.turns_ == 1) {
                wakeups_.resume_woken();
            }
            --wakeups_.turns_;
        }

     private:
        Wakeups& wakeups_;
    };

    explicit Wakeups(boost::asio::execution_context& context)
        : service(context), io_(static_cast<boost::asio::io_context&>(context)) {}

 private:
    friend class Wakeup;

    struct Waiter {
        Waiter() = default;
        Waiter(const Waiter&) = delete;
        Waiter& operator=(const Waiter&) = delete;
        virtual ~Waiter() = default;
        /// Once.
        virtual void resume() = 0;
    };
    using Waiters = std::list<std::unique_ptr<Waiter>>;

    template <typename Handler>
    Waiters::iterator add(Handler handler) {
        struct Coroutine final : Waiter {
            Coroutine(Handler own, boost::asio::io_context& io)
                : handler(std::move(own)), work(io.get_executor()) {}
            void resume() override {
                Handler last = std::move(handler);
                std::move(last)();
            }
            Handler handler;
            boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
        };
        return waiting_.insert(
            waiting_.end(), std::make_unique<Coroutine>(std::move(handler), io_));
    }
    void wake(Waiters::iterator waiter) {
        woken_.splice(woken_.end(), waiting_, waiter);
        if (turns_ == 0 && woken_.size() == 1) {
            boost::asio::post(io_, [this] { const Turn turn(*this); });
        }
    }
    void resume_woken() {
        while (!woken_.empty()) {
            const std::unique_ptr<Waiter> first = std::move(woken_.front());
            woken_.pop_front();
            first->resume();
        }
    }
    void shutdown() override {
        // What goes may own what else is in the lists.
        const Waiters waiting = std::exchange(waiting_, {});
        const Waiters woken = std::exchange(woken_, {});
    }

    boost::asio::io_context& io_;
    Waiters waiting_;
    Waiters woken_;
    int turns_ = 0;
};

class Wakeup {
 public:
    explicit Wakeup(boost::asio::io_context& io)
        : wakeups_(boost::asio::use_service<Wakeups>(io)) {}
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;
    ~Wakeup() = default;

    /// Returns after the next wake(), or at once if there was one since the last wait(). One
    /// coroutine at a time, which shares ownership of the Wakeup.
    boost::asio::awaitable<void> wait() {
        if (!woken_) {
            co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void()>(
                [this](auto handler) { waiter_ = wakeups_.add(std::move(handler)); },
                boost::asio::use_awaitable);
        }
        woken_ = false;
    }
    void wake() {
        woken_ = true;
        if (const auto waiter = std::exchange(waiter_, std::nullopt)) {
            wakeups_.wake(*waiter);
        }
    }

 private:
    Wakeups& wakeups_;
    std::optional<Wakeups::Waiters::iterator> waiter_;
    bool woken_ = false;
};

}  // namespace cellkeep
