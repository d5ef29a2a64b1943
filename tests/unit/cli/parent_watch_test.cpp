// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/parent_watch.hpp"

#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace cellkeep::cli {
namespace {

constexpr std::chrono::seconds kPatience{20};

/// A process that lives until its pipe is closed.
class Child {
 public:
    Child() {
        auto pipe = make_pipe();
        REQUIRE(pipe.has_value());
        pid_ = ::fork();
        if (pid_ == 0) {
            pipe.value().write_end.reset();
            char byte = 0;
            (void)!::read(pipe.value().read_end.get(), &byte, 1);
            ::_exit(0);
        }
        life_ = std::move(pipe.value().write_end);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() { reap(); }

    pid_t pid() const { return pid_; }
    void end() { life_.reset(); }
    void reap() {
        end();
        if (pid_ > 0) {
            CHECK(::waitpid(pid_, nullptr, 0) == pid_);
            pid_ = -1;
        }
    }

 private:
    pid_t pid_ = -1;
    UniqueFd life_;
};

TEST_CASE("the end of the watched process is reported once", "[cli][parent]") {
    boost::asio::io_context io;
    Child child;
    int gone = 0;
    const auto watch = ParentWatch::create(io, child.pid(), [&gone] { ++gone; });
    REQUIRE(watch.has_value());
    (void)io.poll();
    CHECK(gone == 0);
    child.end();
    CHECK(io.run_for(kPatience) == 1);
    CHECK(gone == 1);
}

TEST_CASE("a watch that was given up reports nothing", "[cli][parent]") {
    boost::asio::io_context io;
    Child child;
    int gone = 0;
    auto watch = ParentWatch::create(io, child.pid(), [&gone] { ++gone; });
    REQUIRE(watch.has_value());
    watch.value().reset();
    child.reap();
    (void)io.run_for(kPatience);
    CHECK(gone == 0);
}

TEST_CASE("a process that is gone already is not found", "[cli][parent]") {
    boost::asio::io_context io;
    Child child;
    const pid_t pid = child.pid();
    child.reap();
    const auto watch = ParentWatch::create(io, pid, [] {});
    REQUIRE(watch.has_error());
    CHECK(watch.error().code() == ErrorCode::kNotFound);
}

TEST_CASE("JPY_PARENT_PID is a process id, or nothing", "[cli][parent]") {
    CHECK(parse_parent_pid("123").value() == 123);
    for (const char* none : {static_cast<const char*>(nullptr), "", "0"}) {
        CHECK_FALSE(parse_parent_pid(none).value().has_value());
    }
    for (const char* bad : {"-1", "x", "12x", " 12", "00", "99999999999999"}) {
        CAPTURE(bad);
        REQUIRE(parse_parent_pid(bad).has_error());
        CHECK(parse_parent_pid(bad).error().code() == ErrorCode::kInvalidArgument);
    }
}

}  // namespace
}  // namespace cellkeep::cli
