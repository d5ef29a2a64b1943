// SPDX-License-Identifier: Apache-2.0
//
// A client of the revisions that begin with initialize, for as long as its session: what it can be
// asked, what it has not answered yet, what it wants to hear of, and how messages reach it that
// belong to no request of its. Shared by the transport and its calls. io_context thread only.
#pragma once

#include "kernel-manager/mcp/asking/questions.hpp"
#include "kernel-manager/mcp/changes/subscription.hpp"
#include "kernel-manager/mcp/wire/capabilities.hpp"
#include "kernel-manager/mcp/wire/log_level.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace cellkeep::mcp {

class Client {
 public:
    /// Takes a message; false: there is no room for it now.
    using Outlet = std::function<bool(const nlohmann::json&)>;

    Client(boost::asio::io_context& io, ClientCapabilities capabilities)
        : capabilities_(capabilities), questions_(io) {}
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client() = default;

    const ClientCapabilities& capabilities() const { return capabilities_; }
    Questions& questions() { return questions_; }

    /// Empty: nothing reaches it but with an answer.
    void set_outlet(Outlet outlet) { outlet_ = std::move(outlet); }
    bool has_outlet() const { return outlet_ != nullptr; }
    /// False if it was not taken.
    bool send(const nlohmann::json& message) const { return outlet_ && outlet_(message); }

    /// The resources whose changes it wants to hear of; null before the first.
    std::shared_ptr<Subscription> subscription;
    std::optional<LogLevel> log_level;

    /// Called once, by close(); one at a time.
    void on_close(std::function<void()> action) { on_close_ = std::move(action); }
    /// It has gone: its questions end, and it hears nothing more.
    void close() {
        subscription.reset();
        outlet_ = {};
        questions_.close();
        if (const auto action = std::exchange(on_close_, {})) {
            action();
        }
    }

 private:
    ClientCapabilities capabilities_;
    Questions questions_;
    Outlet outlet_;
    std::function<void()> on_close_;
};

}  // namespace cellkeep::mcp
