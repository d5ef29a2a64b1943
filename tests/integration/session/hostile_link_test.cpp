// SPDX-License-Identifier: Apache-2.0
//
// A session whose kernel is an attacker's program (hostile_kernel.py), next to one whose kernel is
// honest: named attacks, and attacks chosen by a seeded generator for some seconds. For
// any message of the hostile one, each of its requests gets one answer in time, the other session
// is served correctly, and the server does not grow.
#include "kernel-manager/environments/python_program.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/integration/session/session_fixture.hpp"

#include <catch2/catch.hpp>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <sstream>
#include <string>

using cellkeep::session::ExecutionRequest;
using cellkeep::session::ExecutionStatus;
using cellkeep::session::KernelCatalog;
using cellkeep::session::KernelSpec;
using cellkeep::session::ServiceConfig;
using cellkeep::session::Session;
using cellkeep::session::SessionOptions;
using cellkeep::test::ServiceFixture;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kProgramBytesMax = 1ULL << 20U;
constexpr std::size_t kStatusBytesMax = 64ULL << 10U;
/// What the journals, the answers and a frame in the making of two sessions may take, with the
/// sanitizers' share.
constexpr std::uint64_t kGrowthBytesMax = 768ULL << 20U;
constexpr auto kRandomTime = 8s;

KernelSpec spec_of(const std::string& language, std::uint64_t seed, const std::string& attack) {
    KernelSpec spec;
    spec.language = language;
    spec.argv = {
        cellkeep::environments::kPythonProgram,
        "-Sc",
        cellkeep::read_file(CELLKEEP_HOSTILE_KERNEL, kProgramBytesMax).value(),
        std::to_string(seed),
        attack};
    spec.read_only = {
        {"/usr/bin", "/usr/bin"},
        {"/usr/lib", "/usr/lib"},
        {.source = "/usr/lib64", .target = "/usr/lib64", .optional = true}};
    spec.environment = {"default", "unlocked"};
    return spec;
}

/// The languages "good" and "hostile".
ServiceConfig config_of(std::uint64_t seed, const std::string& attack) {
    ServiceConfig config;
    config.catalog = KernelCatalog();
    config.catalog.add(spec_of("good", seed, "good"));
    config.catalog.add(spec_of("hostile", seed, attack));
    for (const char* control :
         {"memory_limit",
          "process_limit",
          "cpu_limit",
          "cpu_accounting",
          "freeze",
          "private_image"}) {
        config.allow_degraded.insert(control);  // as an ordinary user; nothing here is about them
    }
    return config;
}

SessionOptions options_of(const char* language) {
    SessionOptions options;
    options.language = language;
    options.limits.consecutive_failures = 0;  // failing is what it does
    return options;
}

std::uint64_t resident_bytes() {
    std::istringstream status(cellkeep::read_file("/proc/self/status", kStatusBytesMax).value());
    std::string word;
    std::uint64_t kilobytes = 0;
    while (status >> word && word != "VmRSS:") {
    }
    status >> kilobytes;
    return kilobytes << 10U;
}

std::uint64_t seed_of_this_run() {
    const char* wanted = std::getenv("CELLKEEP_HOSTILE_SEED");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : std::random_device{}();
}

class Pair {
 public:
    Pair(std::uint64_t seed, const std::string& attack)
        : fixture_(config_of(seed, attack)),
          good_(fixture_.open(options_of("good"))),
          hostile_(fixture_.open(options_of("hostile"))) {}

    /// Sends one request to each. Returns false when the hostile one stays dead.
    bool exchange() {
        ExecutionRequest request;
        request.code = "x";
        request.timeout = 250ms;
        std::optional<cellkeep::Result<cellkeep::session::ExecutionResult>> answer;
        fixture_.spawn(hostile_->execute(request), answer);
        check_good();
        fixture_.run_until([&answer] { return answer.has_value(); });
        check_good();
        if (answer->has_error()) {
            return false;
        }
        CHECK_FALSE(answer->value().id.empty());
        CHECK(answer->value().session_id == hostile_->id());
        return true;
    }

    void check_good() {
        const std::string code = "echo " + std::to_string(++count_);
        const auto result = fixture_.execute(*good_, code);
        CHECK(result.status == ExecutionStatus::kOk);
        CHECK(result.stdout_text == code);
        CHECK(good_->info().restarts == 0);
    }

    /// Removes the hostile session, which must be possible after any attack.
    void end() {
        REQUIRE(fixture_.service.remove(hostile_->id()).has_value());
        check_good();
    }

 private:
    ServiceFixture fixture_;
    std::shared_ptr<Session> good_;
    std::shared_ptr<Session> hostile_;
    int count_ = 0;
};

}  // namespace

TEST_CASE(
    "whatever a kernel does on its link, its session gets an answer and the next one is right",
    "[session][hostile]") {
    const auto* attack = GENERATE(
        "garbage",
        "a length of zero",
        "a length past the bound",
        "a length that is never filled",
        "tables that lie",
        "text that is wrong",
        "headers that are wrong",
        "channel that is none",
        "parents of others",
        "the idle of others",
        "answers never asked",
        "reply twice",
        "idle twice",
        "idle before the reply",
        "negative counts",
        "input asked of no client",
        "as many buffers as may be",
        "one buffer too many",
        "very many buffers",
        "a large message",
        "a flood of small messages",
        "a flood of displays",
        "pipes that never end",
        "a child that talks for ever",
        "closed in the middle of a frame",
        "closed for writing",
        "closed for reading",
        "no answer at all",
        "stalls",
        "stalls and ignores signals",
        "stops itself",
        "dies",
        "dies by a signal");
    CAPTURE(attack);
    Pair pair(1, attack);
    CHECK(pair.exchange());
    pair.end();
}

TEST_CASE(
    "a kernel that attacks at random for some seconds changes nothing for the session next to it",
    "[session][hostile]") {
    const std::uint64_t first = seed_of_this_run();
    // Printed first: a sanitizer ends the program before a test can report.
    (void)std::printf("CELLKEEP_HOSTILE_SEED=%llu\n", static_cast<unsigned long long>(first));
    (void)std::fflush(stdout);
    const std::uint64_t before = resident_bytes();
    const auto until = std::chrono::steady_clock::now() + kRandomTime;
    std::uint64_t seed = first;
    do {
        CAPTURE(seed);
        Pair pair(seed++, "random");
        for (int round = 0; round < 6 && pair.exchange(); ++round) {
        }
        pair.end();
    } while (std::chrono::steady_clock::now() < until);
    const std::uint64_t after = resident_bytes();
    CAPTURE(before, after, seed - first);
    CHECK(after < before + kGrowthBytesMax);
}
