// SPDX-License-Identifier: Apache-2.0
//
// A Session without a sandbox or a kernel: records what the front submits, answers as the test
// says, and publishes output with the same courtesy towards a congested observer as the real one.
#pragma once

#include "kernel-manager/session/session.hpp"
#include "protocol/message.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter::test {

struct Submitted {
    protocol::Message message;
    std::shared_ptr<session::ReplySink> origin;
};

class FakeSession : public session::Session {
 public:
    explicit FakeSession(std::string id = "ses_0123456789abcdef01234567");

    std::vector<Submitted> submitted;
    std::vector<session::OutputObserver*> observers;
    std::string connection_file;
    session::KernelState kernel_state = session::KernelState::kIdle;
    std::shared_ptr<void> clients = std::make_shared<char>();
    std::shared_ptr<void> returning_clients = std::make_shared<char>();
    std::optional<protocol::Message> open_question;  // what question() answers
    std::function<void()> on_resume;
    /// Before the observers see it.
    std::function<void(const protocol::Message&)> on_publish;

    /// An iopub message of this type to every observer, now.
    void publish(const std::string& msg_type, const nlohmann::json& content);
    /// The same with one buffer of this size: large without being large JSON.
    void publish_bytes(std::size_t number, std::size_t bytes);
    /// This message again, without a copy of its bytes.
    void publish(const protocol::Message& message) { to_observers(message); }
    static protocol::Message make_bytes(std::size_t number, std::size_t bytes);
    bool congested() const;
    /// A reply to what was submitted, through its origin.
    static void reply(const Submitted& request, const nlohmann::json& content);

    const std::string& id() const override { return id_; }
    session::SessionInfo info() const override;
    session::KernelState state() const override { return kernel_state; }
    void submit(protocol::Message request, std::shared_ptr<session::ReplySink> origin) override;
    void subscribe(session::OutputObserver* observer) override;
    void unsubscribe(session::OutputObserver* observer) override;
    void resume_output() override;
    const session::OutputJournal& journal() const override;
    std::shared_ptr<void> connect_client() override { return clients; }
    std::shared_ptr<void> connect_returning_client() override { return returning_clients; }
    std::optional<protocol::Message> question() const override { return open_question; }
    void set_connection_file(std::string path) override { connection_file = std::move(path); }
    Result<std::shared_ptr<session::Execution>> begin(session::ExecutionRequest) override;
    std::shared_ptr<session::Execution> find_execution(const std::string&) const override {
        return nullptr;
    }
    std::vector<std::shared_ptr<session::Execution>> list_executions() const override { return {}; }
    Status interrupt_execution(const std::string&) override { return interrupt(); }
    Status interrupt() override;
    boost::asio::awaitable<Status> restart() override;
    Status interrupt_language(const std::string&) override { return interrupt(); }
    boost::asio::awaitable<Status> restart_language(const std::string&) override {
        return restart();
    }
    Status update(const session::SessionUpdate&) override { return ok(); }
    Result<sandbox::Workspace> workspace() override;
    void touch() override {}
    void close(session::Death reason) override;

 private:
    void to_observers(const protocol::Message& message);

    std::string id_;
    std::uint64_t sequence_ = 0;
    protocol::Header parent_;
};

}  // namespace cellkeep::jupyter::test
