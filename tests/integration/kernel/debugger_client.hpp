// SPDX-License-Identifier: Apache-2.0
//
// A front end's debugger, speaking to a kernel that KernelClient has started. It keeps the messages
// that the test has not waited for yet. Every wait has KernelClient's deadline.
#pragma once

#include "tests/support/kernel_client.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::test {

class Debugger {
 public:
    explicit Debugger(KernelClient& kernel) : kernel_(kernel) {}

    /// Sends a request; returns the msg_id.
    std::string send(
        const char* command, const nlohmann::json& arguments = nlohmann::json::object()) {
        return kernel_.send(
            protocol::Channel::kControl,
            "debug_request",
            {{"type", "request"}, {"seq", ++seq_}, {"command", command}, {"arguments", arguments}});
    }

    /// The response of the Debug Adapter Protocol. What else comes is kept for later.
    nlohmann::json ask(
        const char* command, const nlohmann::json& arguments = nlohmann::json::object()) {
        const std::string id = send(command, arguments);
        const protocol::Message reply = wait_for([&](const protocol::Message& message) {
            return message.header().msg_type == "debug_reply" && message.parent().msg_id == id;
        });
        CHECK(content(reply)["request_seq"] == seq_);
        CHECK(content(reply)["command"] == command);
        return content(reply);
    }

    nlohmann::json must(
        const char* command, const nlohmann::json& arguments = nlohmann::json::object()) {
        const nlohmann::json response = ask(command, arguments);
        INFO(command << ": " << response.dump());
        REQUIRE(response["success"] == true);
        return response.value("body", nlohmann::json::object());
    }

    nlohmann::json event(const char* name) {
        return content(wait_for([&](const protocol::Message& message) {
            return message.header().msg_type == "debug_event" && content(message)["event"] == name;
        }))["body"];
    }

    void start() {
        (void)must("initialize", {{"clientID", "test"}, {"adapterID", "python"}});
        (void)must("attach");
    }

    /// Breakpoints in a cell; where they really are.
    std::string break_at(const std::string& code, const std::vector<int>& lines) {
        const std::string path = must("dumpCell", {{"code", code}})["sourcePath"];
        nlohmann::json wanted = nlohmann::json::array();
        for (const int line : lines) {
            wanted.push_back({{"line", line}});
        }
        const nlohmann::json set =
            must("setBreakpoints", {{"source", {{"path", path}}}, {"breakpoints", wanted}});
        for (const nlohmann::json& breakpoint : set["breakpoints"]) {
            CHECK(breakpoint["verified"] == true);
        }
        (void)must("configurationDone");
        return path;
    }

    /// Runs until it is stopped; returns the msg_id.
    std::string run_to_stop(const std::string& code) {
        const std::string id = kernel_.start(code);
        thread_ = event("stopped")["threadId"];
        return id;
    }

    nlohmann::json frames() { return must("stackTrace", {{"threadId", thread_}})["stackFrames"]; }
    int line() { return frames()[0]["line"]; }
    void step(const char* command) {
        (void)must(command, {{"threadId", thread_}});
        (void)event("stopped");
    }
    void go_on() { (void)must("continue", {{"threadId", thread_}}); }

    Messages until_idle(const std::string& id) {
        Messages seen;
        (void)wait_for([&](const protocol::Message& message) {
            if (message.parent().msg_id == id) {
                seen.push_back(message);
            }
            return message.header().msg_type == "status" && message.parent().msg_id == id &&
                   content(message)["execution_state"] == "idle";
        });
        return seen;
    }

 private:
    /// Returns the first message that matches: of the kept ones, then of new ones. Keeps the rest.
    template <typename Matches>
    protocol::Message wait_for(Matches matches) {
        for (std::size_t index = 0;; ++index) {
            if (index == kept_.size()) {
                auto next = kernel_.receive();
                if (!next) {
                    throw std::runtime_error("the kernel closed its link");
                }
                kept_.push_back(std::move(*next));
            }
            if (matches(kept_[index])) {
                protocol::Message found = kept_[index];
                kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index));
                return found;
            }
        }
    }

    KernelClient& kernel_;
    Messages kept_;
    int seq_ = 0;
    nlohmann::json thread_ = 1;
};

}  // namespace cellkeep::test
