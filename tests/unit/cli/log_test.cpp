// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/log.hpp"

#include "protocol/support/unique_fd.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace cellkeep::cli {
namespace {

TEST_CASE("an event is one JSON object's tail, or text", "[cli][log]") {
    CHECK(
        format_event("request", {{"status", 200}}, LogFormat::kJson) ==
        R"("event":"request","status":200})");
    CHECK(
        format_event("stopped", nlohmann::json::object(), LogFormat::kJson) ==
        R"("event":"stopped"})");
    CHECK(
        format_event("request", {{"path", "/a b"}}, LogFormat::kText) == R"(request path="/a b")");
}

TEST_CASE("a line break in a field cannot forge a line", "[cli][log]") {
    for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
        const std::string line = format_event("e", {{"path", "/a\n{\"level\":\"info\"}"}}, format);
        CHECK(line.find('\n') == std::string::npos);
    }
}

TEST_CASE("what looks like a secret is not written", "[cli][log]") {
    for (const LogFormat format : {LogFormat::kJson, LogFormat::kText}) {
        const std::string line = format_event(
            "e", {{"message", "API_KEY=q8Zr4Xw2Lk9Vt3Bn7Hs5"}, {"password", "hunter2"}}, format);
        CHECK_THAT(line, !Catch::Contains("q8Zr4") && !Catch::Contains("hunter2"));
        CHECK_THAT(line, Catch::Contains("API_KEY=[redacted:secret]"));
    }
}

/// What is written to standard error while it lives.
class Capture {
 public:
    explicit Capture(const std::string& path)
        : path_(path), before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
        const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        REQUIRE(file);
        REQUIRE(::dup2(file.get(), STDERR_FILENO) >= 0);
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture() {
        (void)::dup2(before_.get(), STDERR_FILENO);  // Ignored: a destructor cannot report it.
    }
    std::vector<std::string> lines() const {
        std::ifstream file(path_);
        std::vector<std::string> all;
        for (std::string line; std::getline(file, line);) {
            all.push_back(line);
        }
        return all;
    }

 private:
    std::string path_;
    UniqueFd before_;
};

TEST_CASE("events of several threads are whole lines", "[cli][log]") {
    const cellkeep::test::TemporaryDirectory directory;
    std::vector<std::string> lines;
    {
        const Capture capture(directory.path() + "/log");
        std::vector<std::thread> threads;
        for (int number = 0; number < 4; ++number) {
            threads.emplace_back([number] {
                for (int i = 0; i < 2000; ++i) {
                    log_event(LogLevel::kWarning, "store", {{"thread", number}, {"line", i}});
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        lines = capture.lines();
    }
    CHECK(lines.size() == 8000);
    for (const std::string& line : lines) {
        CAPTURE(line);
        REQUIRE(nlohmann::json::accept(line));
    }
}

TEST_CASE("levels and formats are known by name only", "[cli][log]") {
    CHECK(parse_log_level("warning").value() == LogLevel::kWarning);
    CHECK(parse_log_format("text").value() == LogFormat::kText);
    for (const char* text : {"", "Info", "verbose", "warn", "1"}) {
        CAPTURE(text);
        CHECK(parse_log_level(text).has_error());
        CHECK(parse_log_format(text).has_error());
    }
}

TEST_CASE("a log line shows what a terminal would obey or turn around", "[cli][log]") {
    const std::pair<const char*, const char*> shown[] = {
        {"\xC2\x9B", "\\u009b"},      // C1: as ESC [
        {"\xE2\x80\xAE", "\\u202e"},  // right-to-left override
        {"\xE2\x80\xA8", "\\u2028"},  // line separator
        {"\xE2\x81\xA9", "\\u2069"},  // pop directional isolate
        {"\xEF\xBB\xBF", "\\ufeff"},  // byte order mark
        {"\xC3\xA4", "\xC3\xA4"},     // ä and other letters stay
        {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}};
    for (const auto& [raw, wanted] : shown) {
        CAPTURE(wanted);
        for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
            const std::string line =
                format_event("request", {{"path", std::string("/") + raw + "x"}}, format);
            CHECK(line.find(std::string("/") + wanted + "x\"") != std::string::npos);
        }
    }
}

}  // namespace
}  // namespace cellkeep::cli
