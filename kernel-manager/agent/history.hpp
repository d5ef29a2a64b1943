// SPDX-License-Identifier: Apache-2.0
//
// What the session API remembers beyond a session's and the server's life: writes sessions and
// executions to the store, secrets taken out, and shows those that only the store still knows. No
// code and no output. io_context thread only; without a store it remembers nothing.
#pragma once

#include "kernel-manager/http/request.hpp"
#include "kernel-manager/http/response.hpp"
#include "kernel-manager/session/running_execution.hpp"
#include "kernel-manager/session/service.hpp"
#include "kernel-manager/store/store.hpp"

#include <boost/asio/awaitable.hpp>

#include <map>
#include <memory>
#include <string>

namespace cellkeep::agent {

class History : public session::SessionListener {
 public:
    /// store: null for none; else it must outlive this and the io_context's last work.
    explicit History(store::Store* store) : store_(store) {}

    Status on_session_created(const std::shared_ptr<session::Session>& session) override;
    void on_session_closed(const std::string& session_id) override;

    /// An accepted execution: it is written now and again when it has finished.
    boost::asio::awaitable<void> note(
        std::shared_ptr<session::Execution> execution, std::string owner);

    // For what is not known otherwise: 404, or what the store says, to whom may see it.
    /// 410 if there was such a session.
    boost::asio::awaitable<http::Response> answer_session(http::Request& request) const;
    boost::asio::awaitable<http::Response> answer_execution(http::Request& request) const;
    boost::asio::awaitable<http::Response> answer_list(
        http::Request& request, std::size_t limit) const;

    /// Why it does not remember, or empty.
    std::string trouble() const { return store_ == nullptr ? std::string() : store_->trouble(); }

 private:
    struct Open {
        store::SessionRecord record;
        std::weak_ptr<session::Session> session;
    };
    static boost::asio::awaitable<void> note_end(
        store::Store* store,
        std::shared_ptr<session::Execution> execution,
        store::ExecutionRecord record);

    store::Store* store_;
    std::map<std::string, Open> open_;  // by session id
};

}  // namespace cellkeep::agent
