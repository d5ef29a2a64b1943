// SPDX-License-Identifier: Apache-2.0
//
// An interpreter without a process: the test sends its messages, and sees what it receives. The
// record stays when the Interpreter is gone.
#pragma once

#include "kernel-manager/kernel/interpreter.hpp"
#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session::test {

/// A message of a kernel that follows from a request.
inline protocol::Message answer(
    const protocol::Message& request,
    protocol::Channel channel,
    const std::string& type,
    const nlohmann::json& content,
    const std::string& kernel = "kernel") {
    return protocol::Message::make(
        channel,
        protocol::make_header(type, kernel, "user"),
        protocol::to_json(request.header()),
        content);
}

inline protocol::Message status_of(const protocol::Message& request, const std::string& state) {
    return answer(request, protocol::Channel::kIopub, "status", {{"execution_state", state}});
}

struct FakeProcess {
    sandbox::WorkerId id = 0;
    Interpreter::Events events;
    std::vector<protocol::Message> sent;
    std::vector<UniqueFd> descriptors;  // that came with messages
    std::vector<int> signals;
    bool paused = false;
    bool gone = false;  // its Interpreter has ended
    Status link = ok();
    std::vector<protocol::Message> left;  // drain_all() hands it out
    std::string piped;                    // drain_pipes() hands it out

    void say(const protocol::Message& message) const { events.on_message(message); }
    /// Sends the first answer, which makes it ready.
    void answer_info(
        const nlohmann::json& info = {{"status", "ok"}}, const std::string& kernel = "kernel") {
        say(answer(sent.front(), protocol::Channel::kShell, "kernel_info_reply", info, kernel));
    }
};

class FakeInterpreter final : public Interpreter {
 public:
    explicit FakeInterpreter(std::shared_ptr<FakeProcess> process) : process_(std::move(process)) {}
    FakeInterpreter(const FakeInterpreter&) = delete;
    FakeInterpreter& operator=(const FakeInterpreter&) = delete;
    ~FakeInterpreter() override { process_->gone = true; }

    sandbox::WorkerId id() const override { return process_->id; }
    Status send(const protocol::Message& message) override {
        if (process_->link.has_value()) {
            process_->sent.push_back(message);
        }
        return process_->link;
    }
    Status send_with(const protocol::Message& message, UniqueFd descriptor) override {
        process_->descriptors.push_back(std::move(descriptor));
        return send(message);
    }
    Status send_signal(int number) const override {
        process_->signals.push_back(number);
        return ok();
    }
    bool drain_pipes(int also) override {
        const auto process = process_;
        pollfd other{also, POLLIN, 0};
        const bool others = ::poll(&other, 1, 0) > 0;
        if (const std::string text = std::exchange(process->piped, {}); !text.empty()) {
            process->events.on_text(OutputStream::kStdout, text);
        }
        return others;
    }
    void drain_all() override {
        const auto process = process_;
        for (const protocol::Message& message : std::exchange(process->left, {})) {
            process->events.on_message(message);
        }
        (void)drain_pipes(-1);
    }
    void pause_reading() override { process_->paused = true; }
    void resume_reading() override { process_->paused = false; }

 private:
    std::shared_ptr<FakeProcess> process_;
};

/// Starts fake interpreters: a sandbox whose events the test sends itself.
struct FakeStarts {
    std::vector<std::shared_ptr<FakeProcess>> processes;
    Status status = ok();  // of the next starts

    Result<std::unique_ptr<Interpreter>> start(Interpreter::Events events) {
        if (status.has_error()) {
            return status.error();
        }
        auto process = std::make_shared<FakeProcess>();
        process->id = static_cast<sandbox::WorkerId>(processes.size() + 1);
        process->events = std::move(events);
        processes.push_back(process);
        return std::unique_ptr<Interpreter>(std::make_unique<FakeInterpreter>(process));
    }
    FakeProcess& last() const { return *processes.back(); }
    /// An exit of the last one with this code.
    sandbox::WorkerExit exit(int status_code) const {
        return {.id = last().id, .signaled = false, .status = status_code, .failure = {}};
    }
};

}  // namespace cellkeep::session::test
