// SPDX-License-Identifier: Apache-2.0
//
// Sessions without sandboxes: they remember what they were asked and answer what the test said.
// Their workspace is a temporary directory.
#pragma once

#include "kernel-manager/agent/backend.hpp"
#include "kernel-manager/agent/routes.hpp"
#include "kernel-manager/http/application.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cellkeep::agent::test {

class FakeSession : public session::Session {
 public:
    FakeSession(session::SessionInfo info, int workspace_fd);

    const std::string& id() const override { return info_.id; }
    session::SessionInfo info() const override { return info_; }
    void submit(protocol::Message, std::shared_ptr<session::ReplySink>) override {}
    void subscribe(session::OutputObserver*) override {}
    void unsubscribe(session::OutputObserver*) override {}
    void resume_output() override {}
    const session::OutputJournal& journal() const override { return journal_; }
    void set_connection_file(std::string path) override { info_.connection_file = std::move(path); }
    boost::asio::awaitable<Result<session::ExecutionResult>> execute(
        session::ExecutionRequest request) override;
    std::optional<session::ExecutionResult> find_execution(const std::string& id) const override;
    Status interrupt() override;
    boost::asio::awaitable<Status> restart() override;
    Result<sandbox::Workspace> workspace() override;
    void touch() override { ++touched; }
    session::KernelState state() const override { return info_.state; }
    std::shared_ptr<void> connect_client() override { return nullptr; }
    void close(session::Death) override { closed = true; }

    std::vector<session::ExecutionRequest> requests;
    std::optional<Error> failure;  // what every operation answers
    int interrupts = 0;
    int restarts = 0;
    int touched = 0;
    bool closed = false;

 private:
    session::SessionInfo info_;
    session::OutputJournal journal_{16, 1024};
    int workspace_fd_;
};

class FakeBackend : public Backend {
 public:
    FakeBackend();
    ~FakeBackend() override;

    boost::asio::awaitable<Result<std::shared_ptr<session::Session>>> create(
        session::SessionOptions options) override;
    std::shared_ptr<session::Session> find(const std::string& id) const override;
    std::vector<std::shared_ptr<session::Session>> list() const override;
    Status remove(const std::string& id) override;
    std::vector<std::string> languages() const override { return {"python", "sql"}; }
    session::LimitCeilings ceilings() const override { return {}; }

    std::shared_ptr<FakeSession> add(session::SessionOptions options = {});
    const std::string& directory() const { return directory_; }

    std::vector<std::shared_ptr<FakeSession>> sessions;
    std::optional<Error> failure;          // what create() answers
    std::optional<Error> session_failure;  // what sessions made from now on answer
    int removed = 0;

 private:
    std::string directory_;
    int directory_fd_ = -1;
    int next_id_ = 1;
};

/// The API over a FakeBackend, asked without sockets.
class Api {
 public:
    Api();

    struct Answer {
        int status = 0;
        http::Headers headers;
        std::string text;
        nlohmann::json json;  // null if the text is not JSON
    };
    /// With the token and application/json, unless headers say otherwise.
    Answer ask(
        const std::string& method,
        const std::string& target,
        const std::string& body = {},
        const std::vector<std::pair<std::string, std::string>>& headers = {});

    FakeBackend backend;
    http::Principal principal{"admin", http::Role::kAdmin};

 private:
    http::Application application_;
    Routes routes_;
};

}  // namespace cellkeep::agent::test
