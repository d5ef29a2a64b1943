// SPDX-License-Identifier: Apache-2.0
//
// A CommandTable without a sandbox: its pid 1 answers at once, and a command is what the test does
// with the ends of its pipes.
#pragma once

#include "kernel-manager/kernel/process/worker_starts.hpp"
#include "kernel-manager/process/command_table.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::process::test {

class FakeCommands {
 public:
    using Command = std::shared_ptr<process::Command>;

    explicit FakeCommands(boost::asio::io_context& io)
        : io_(io),
          starts_(io, sandbox_hooks(), std::chrono::hours(1), [this] { return owner_; }),
          table(io, hooks(), [this] { return owner_; }) {
        auto pair = make_socket_pair(SOCK_SEQPACKET);
        REQUIRE(pair.has_value());
        near_ = std::move(pair.value().first);
        far_ = std::move(pair.value().second);
    }
    FakeCommands(const FakeCommands&) = delete;
    FakeCommands& operator=(const FakeCommands&) = delete;
    ~FakeCommands() { table.close(); }

    /// What the command writes to stdout before both outputs are closed; nothing: they stay open.
    std::optional<std::string> says;
    std::optional<Error> refuses;            // the request for a start
    std::optional<Error> fails;              // the start
    bool answers = true;                     // pid 1 does
    std::vector<sandbox::WorkerSpec> specs;  // of every start, with the command's ends
    std::vector<std::pair<sandbox::WorkerId, int>> signals;
    int wakes = 0;
    int uses = 0;
    int ends = 0;

    /// Starts one and runs the loop until that is done or waits for pid 1.
    Result<Command> start(CommandOrder order) {
        auto result = std::make_shared<std::optional<Result<Command>>>();
        boost::asio::co_spawn(
            io_,
            [this, result, order]() -> boost::asio::awaitable<void> {
                result->emplace(co_await table.start(order));
            },
            [](const std::exception_ptr& thrown) { REQUIRE_FALSE(thrown); });
        poll();
        return result->has_value() ? std::move(**result)
                                   : Error(ErrorCode::kTimeout, "it has not been answered");
    }
    Command start_one(CommandOrder order = {{"/bin/cat"}, {}, {}, true, {}}) {
        auto started = start(std::move(order));
        REQUIRE(started.has_value());
        return started.value();
    }
    void poll() {
        io_.restart();
        (void)io_.poll();
    }
    void answer() {
        under_way_ = false;
        REQUIRE(::write(far_.get(), "!", 1) == 1);
        poll();
    }
    void write_out(std::size_t index, const std::string& text) {
        REQUIRE(
            ::write(specs[index].stdout_fd.get(), text.data(), text.size()) ==
            static_cast<ssize_t>(text.size()));
    }
    void exit(sandbox::WorkerId worker, int code) {
        table.on_worker_exit({.id = worker, .signaled = false, .status = code, .failure = {}});
    }

 private:
    session::WorkerStarts::Sandbox sandbox_hooks() {
        return {
            .begin_start = [this](sandbox::WorkerSpec spec) -> Result<sandbox::WorkerId> {
                if (refuses) {
                    return *refuses;
                }
                if (says) {
                    REQUIRE(
                        ::write(spec.stdout_fd.get(), says->data(), says->size()) ==
                        static_cast<ssize_t>(says->size()));
                    spec.stdout_fd.reset();
                    spec.stderr_fd.reset();
                }
                specs.push_back(std::move(spec));
                under_way_ = true;
                if (answers) {
                    under_way_ = false;
                    REQUIRE(::write(far_.get(), "!", 1) == 1);
                }
                return static_cast<sandbox::WorkerId>(specs.size());
            },
            .answer_fd = [this] { return near_.get(); },
            .take_start = [this]() -> Result<std::optional<sandbox::Worker>> {
                char byte = 0;
                (void)!::read(near_.get(), &byte, 1);  // Ignored: it only announces the answer.
                if (under_way_) {
                    return std::optional<sandbox::Worker>();
                }
                if (fails) {
                    return *fails;
                }
                const auto id = static_cast<sandbox::WorkerId>(specs.size());
                return std::optional(sandbox::Worker{id, UniqueFd(), 100 + static_cast<pid_t>(id)});
            },
            .give_up = [] {}};
    }
    CommandTable::Hooks hooks() {
        return {
            .begin =
                [this](sandbox::WorkerSpec spec, session::WorkerStart::Done done) {
                    return starts_.begin(std::move(spec), std::move(done));
                },
            .signal = [this](sandbox::WorkerId worker, int number) -> Status {
                signals.emplace_back(worker, number);
                return ok();
            },
            .environment =
                [](const std::map<std::string, std::string>& own) {
                    std::vector<std::string> env{"SESSION=1"};
                    for (const auto& [name, value] : own) {
                        env.push_back(name + "=" + value);
                    }
                    return env;
                },
            .directory = [] { return std::string("/workspace/own"); },
            .wake = [this] { ++wakes; },
            .note_use = [this] { ++uses; },
            .note_end = [this] { ++ends; }};
    }

    boost::asio::io_context& io_;
    std::shared_ptr<int> owner_ = std::make_shared<int>(0);
    UniqueFd near_;
    UniqueFd far_;
    bool under_way_ = false;
    session::WorkerStarts starts_;

 public:
    CommandTable table;
};

}  // namespace cellkeep::process::test
