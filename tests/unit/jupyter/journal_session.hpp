// SPDX-License-Identifier: Apache-2.0
//
// A fake session that keeps a journal, and messages for it.
#pragma once

#include "protocol/limits.hpp"
#include "tests/unit/jupyter/fake_session.hpp"

#include <string>
#include <vector>

namespace cellkeep::jupyter::test {

/// What text_of() gives for one message after another.
using Texts = std::vector<std::string>;

class JournalSession : public FakeSession {
 public:
    explicit JournalSession(
        std::size_t messages_max = limits::kJournalMessagesMax,
        std::size_t bytes_max = limits::kJournalBytesMax);

    const session::OutputJournal& journal() const override { return journal_; }
    session::SessionInfo info() const override;
    void close(session::Death reason) override { death_ = reason; }

    /// An iopub stream message with this text, of this request; returns its msg_id.
    std::string say(const std::string& text, const std::string& request = "request");
    /// `messages` of them: "0", "1" …
    void say_many(std::size_t messages, const std::string& request = "request");
    std::string say_status(const std::string& state, const std::string& request = "request");
    std::string say_type(
        const std::string& msg_type,
        const nlohmann::json& content,
        const std::string& request = "request");
    int resumed = 0;

 private:
    session::OutputJournal journal_;
    std::optional<session::Death> death_;
};

/// An answer to some request.
protocol::Message make_reply(
    const std::string& tag, protocol::Channel channel = protocol::Channel::kShell);
/// The text of a stream message, the tag of a reply, the state of a status.
std::string text_of(const protocol::Message& message);

}  // namespace cellkeep::jupyter::test
