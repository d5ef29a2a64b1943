// SPDX-License-Identifier: Apache-2.0
//
// What one client has been asked and has not answered yet. Only clients of the revisions with a
// handshake are asked so; since 2026-07-28 a result asks (ask.hpp). io_context thread only.
#pragma once

#include "kernel-manager/mcp/wire/rpc.hpp"
#include "protocol/support/completion.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace cellkeep::mcp {

class Questions {
 public:
    /// The client's result. kProtocol: it answered with an error, whose text this is. kCancelled:
    /// the client has gone.
    using Reply = Completion<Result<nlohmann::json>>;
    struct Question {
        std::string id;
        std::shared_ptr<Reply> reply;
    };

    explicit Questions(boost::asio::io_context& io) : io_(io) {}
    Questions(const Questions&) = delete;
    Questions& operator=(const Questions&) = delete;
    ~Questions() = default;

    /// A new one. kLimitExceeded beyond kQuestionsMax.
    Result<Question> add();
    /// Nothing comes for it any more.
    void forget(const std::string& id) { open_.erase(id); }
    /// False if nothing of that id was asked.
    bool deliver(const Message& response);
    /// The client has gone: nothing is asked any more.
    void close();
    std::size_t size() const { return open_.size(); }

 private:
    boost::asio::io_context& io_;
    std::map<std::string, std::shared_ptr<Reply>> open_;
    std::uint64_t last_ = 0;
    bool closed_ = false;
};

}  // namespace cellkeep::mcp
