// SPDX-License-Identifier: Apache-2.0
//
// What the session API remembers beyond a session's and the server's life: writes sessions and
// executions to the store, secrets taken out, and shows those that only the store still knows. No
// code and no output. io_context thread only; without a store it remembers nothing.
#pragma once

#include "kernel-manager/execution/running_execution.hpp"
#include "kernel-manager/http/message/request.hpp"
#include "kernel-manager/http/message/response.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/store/store.hpp"

#include <boost/asio/awaitable.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::api {

class History : public session::SessionListener {
 public:
    /// store: null for none, trouble: why there is none although there should be; else it must
    /// outlive this and the io_context's last work.
    explicit History(store::Store* store, std::string trouble = {})
        : store_(store), no_store_(std::move(trouble)) {}

    /// Of one that another program in this process has left, what runs is written when it has
    /// finished.
    Status on_session_created(const std::shared_ptr<session::Session>& session) override;
    void on_session_closed(const std::string& session_id) override;

    /// A new execution: it is written now and again when it has finished. owner: its session's.
    boost::asio::awaitable<void> note(
        std::shared_ptr<session::Execution> execution, std::string owner);

    // Answers for what only the store knows. 404 if it does not know it, or the principal may not
    // see it.
    /// 410 if there was such a session.
    boost::asio::awaitable<http::Response> answer_session(http::Request& request) const;
    boost::asio::awaitable<http::Response> answer_execution(http::Request& request) const;
    /// 400 if the execution named by ?after= is none of its, or no longer.
    boost::asio::awaitable<http::Response> answer_list(
        http::Request& request, std::size_t limit) const;

    /// Why nothing is remembered, or empty.
    std::string trouble() const { return store_ == nullptr ? no_store_ : store_->trouble(); }

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
    std::string no_store_;
    std::map<std::string, Open> open_;  // by session id
};

}  // namespace cellkeep::api
