// SPDX-License-Identifier: Apache-2.0
//
// Several languages of one session, over fake interpreters.
#include "kernel-manager/session/session_kernels.hpp"

#include "kernel-manager/session/session_executions.hpp"
#include "tests/unit/session/kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::session::test {
namespace {

/// The pieces of KernelFixture, for as many kernels as are asked for.
struct KernelsFixture : KernelFixture {
    KernelsFixture() { setup.catalog = catalog(); }

    static std::shared_ptr<const KernelCatalog> catalog() {
        auto one = std::make_shared<KernelCatalog>();
        for (const char* language : {"python", "bash", "sql", "c1", "c2", "c3", "c4", "c5", "c6"}) {
            KernelSpec spec;
            spec.language = language;
            one->add(spec);
        }
        return one;
    }
    static SessionSetup make_setup() {
        SessionSetup one;
        one.id = "ses_1";
        one.spec = spec();
        return one;
    }
    std::unique_ptr<SupervisedKernel> make(KernelSpec wanted, sandbox::WorkerGroup group) {
        return std::make_unique<SupervisedKernel>(
            io,
            SupervisedKernel::Identity{
                .session_id = "ses_1",
                .spec = std::move(wanted),
                .group = group,
                .start_timeout = std::chrono::hours(1),
                .own = {},
                .spare = false},
            sandbox_hooks(),
            SupervisedKernel::Budget{
                .limits = limits, .account = account, .usage = usage, .queued_bytes = queued_bytes},
            ExecutionFiles::Places{
                .workspace = workspace,
                .saved_texts = saved_texts,
                .work_thread = thread,
                .inputs_thread = thread,
                .inputs = nullptr},
            SupervisedKernel::Audience{.activity = activity, .front_ends = fanout},
            owner_hooks(),
            SupervisedKernel::Log{
                .line = [](const std::string&) {},
                .limit = [](const std::string&, const LimitHit&) {}},
            [this] { return session; });
    }

    SessionSetup setup = make_setup();
    Names sweeps;
    int woken = 0;
    SessionKernels kernels{
        setup,
        {.make = [this](
                     KernelSpec one,
                     sandbox::WorkerGroup group) { return make(std::move(one), group); },
         .wake = [this] { ++woken; },
         .begin_sweep =
             [this] {
                 sweeps.emplace_back("all");
                 return Status(ok());
             },
         .begin_group_sweep =
             [this](sandbox::WorkerGroup group) {
                 sweeps.push_back(std::to_string(group));
                 return Status(ok());
             },
         .spares_others = [this] { return spares; }}};
    bool spares = false;
    sandbox::Workspace workspace{-1, 0, 0};
    SessionTools tools{setup, workspace};
    SessionExecutions executions{io, setup, kernels, account, tools, [this] { ++accepted; }};
    int accepted = 0;

    void launch_main() {
        REQUIRE(kernels.main().launch().has_value());
        process().answer_info();
    }
    static ExecutionRequest code(const std::string& language, const std::string& key = {}) {
        ExecutionRequest one;
        one.code = "1";
        one.language = language;
        one.idempotency_key = key;
        return one;
    }
};

TEST_CASE_METHOD(KernelsFixture, "a language has a kernel once code comes", "[session][kernels]") {
    CHECK(kernels.all().size() == 1);
    CHECK(kernels.find("bash") == nullptr);
    CHECK(kernels.find_used("bash").error().code() == ErrorCode::kConflict);
    CHECK(kernels.find_used("cobol").error().code() == ErrorCode::kInvalidArgument);
    CHECK(kernels.check("cobol").error().code() == ErrorCode::kInvalidArgument);
    REQUIRE(kernels.check("bash").has_value());
    SupervisedKernel& bash = kernels.open("bash");
    CHECK(bash.group() == 1);
    CHECK(&kernels.open("bash") == &bash);
    CHECK(&kernels.of(1) == &bash);
    CHECK(&kernels.of(0) == &kernels.main());
    CHECK(kernels.find_used("bash").value() == &bash);
    CHECK(kernels.list().size() == 9);
    CHECK(kernels.list()[1].name == "bash");
}

TEST_CASE_METHOD(
    KernelsFixture, "in a named environment the kernel's name means Python", "[session][kernels]") {
    SessionSetup named = make_setup();
    named.catalog = catalog();
    named.spec.environment.name = "geo";
    const SessionKernels others{
        named,
        {.make = [this](
                     KernelSpec one,
                     sandbox::WorkerGroup group) { return make(std::move(one), group); },
         .wake = [] {},
         .begin_sweep = [] { return Status(ok()); },
         .begin_group_sweep = [](sandbox::WorkerGroup) { return Status(ok()); },
         .spares_others = [] { return false; }}};
    CHECK(others.find("python3-geo") != nullptr);
    CHECK(others.find("python3-geo") == others.find("python"));
    CHECK(others.check("python3-geo").has_value());
    CHECK(others.check("python3-nlp").error().code() == ErrorCode::kInvalidArgument);
    CHECK(kernels.check("python3-geo").error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE_METHOD(
    KernelsFixture,
    "a session offers its own language first, and each once",
    "[session][kernels]") {
    const bool opened = GENERATE(true, false);
    if (opened) {
        (void)kernels.open("c6");
    }
    const auto offered = kernels.offered();
    SessionInfo info;
    info.language = setup.options.language;
    info.languages = kernels.list();
    const auto told = languages_of(info);
    CHECK(offered.names.size() == 9);
    CHECK(offered.names.front() == setup.options.language);
    CHECK(told.names.front() == setup.options.language);
    CHECK(std::set(offered.names.begin(), offered.names.end()).size() == 9);
    CHECK(std::is_permutation(
        told.names.begin(), told.names.end(), offered.names.begin(), offered.names.end()));
    CHECK(offered.not_offered != nullptr);
}

TEST_CASE_METHOD(KernelsFixture, "a session has eight languages", "[session][kernels]") {
    static_assert(kSessionLanguagesMax == 8);
    for (const char* language : {"bash", "sql", "c1", "c2", "c3", "c4"}) {
        (void)kernels.open(language);
    }
    CHECK(kernels.check("c5").has_value());
    (void)kernels.open("c5");
    CHECK(kernels.check("c6").error().code() == ErrorCode::kLimitExceeded);
    CHECK(kernels.check("bash").has_value());
}

TEST_CASE_METHOD(
    KernelsFixture, "kernels of another program come in their order", "[session][passing]") {
    const auto bash = kernels.open_again("bash");
    REQUIRE(bash.has_value());
    CHECK(bash.value()->group() == 1);
    const auto numbered = kernels.open_again("python:2");
    REQUIRE(numbered.has_value());
    CHECK(numbered.value()->group() == 2);
    CHECK(numbered.value()->spec().language == "python:2");
    kernels.launch_waiting();
    CHECK(woken == 0);  // nothing is launched for them
    for (const char* wrong : {"bash", "python", "python:2", "python:1", "cobol", "cobol:2", ""}) {
        CAPTURE(wrong);
        CHECK(kernels.open_again(wrong).error().code() == ErrorCode::kProtocol);
    }
    for (const char* language : {"sql", "c1", "c2", "c3", "c4"}) {
        REQUIRE(kernels.open_again(language).has_value());
    }
    CHECK(kernels.all().size() == kSessionLanguagesMax);
    CHECK(kernels.open_again("c5").error().code() == ErrorCode::kProtocol);
}

TEST_CASE_METHOD(KernelsFixture, "nothing starts while everything is swept", "[session][kernels]") {
    launch_main();
    REQUIRE(kernels.begin_sweep(kernels.main()).has_value());
    CHECK(sweeps == Names{"all"});
    CHECK(kernels.postpones_launch(kernels.main()));
    (void)kernels.open("bash");
    const std::size_t before = starts.processes.size();
    kernels.launch_waiting();
    CHECK(starts.processes.size() == before);
    SECTION("until it is over") {
        kernels.on_swept();
        CHECK(starts.processes.size() > before);
        CHECK(woken == 1);
        CHECK_FALSE(kernels.postpones_launch(kernels.main()));
    }
    SECTION("nor after the session's end") {
        kernels.close();
        kernels.on_swept();
        CHECK(starts.processes.size() == before);
    }
}

TEST_CASE_METHOD(KernelsFixture, "each language begins what was put off", "[session][kernels]") {
    launch_main();
    (void)kernels.open("bash");
    kernels.launch_waiting();
    process().answer_info();
    const auto requests = [this] {
        std::size_t sent = 0;
        for (const auto& one : starts.processes) {
            sent += one->sent.size();
        }
        return sent;
    };
    const std::size_t before = requests();
    postpones_requests = true;
    REQUIRE(executions.begin(code("")).has_value());
    REQUIRE(executions.begin(code("bash")).has_value());
    CHECK(requests() == before);
    postpones_requests = false;
    kernels.dispatch();
    CHECK(requests() == before + 2);
}

TEST_CASE_METHOD(KernelsFixture, "a sweep spares other languages", "[session][kernels]") {
    launch_main();
    SupervisedKernel& bash = kernels.open("bash");
    kernels.launch_waiting();
    REQUIRE(bash.has_process());
    REQUIRE(kernels.begin_sweep(bash).has_value());
    CHECK(sweeps == Names{"1"});
    CHECK_FALSE(kernels.postpones_launch(bash));
}

TEST_CASE_METHOD(KernelsFixture, "a sweep spares what is no kernel's", "[session][kernels]") {
    launch_main();
    spares = true;
    REQUIRE(kernels.begin_sweep(kernels.main()).has_value());
    CHECK(sweeps == Names{"0"});
    CHECK_FALSE(kernels.postpones_launch(kernels.main()));
    spares = false;
    REQUIRE(kernels.begin_sweep(kernels.main()).has_value());
    CHECK(sweeps == Names{"0", "all"});
}

TEST_CASE_METHOD(KernelsFixture, "an execution goes to its language", "[session][executions]") {
    launch_main();
    const auto first = executions.begin(code("", "key"));
    REQUIRE(first.has_value());
    CHECK(first.value()->order().language == "python");
    CHECK(executions.find(first.value()->id()) == first.value());
    CHECK(kernels.are_busy());
    CHECK(accepted == 1);
    SECTION("a key stands for its execution") {
        CHECK(executions.begin(code("", "key")).value() == first.value());
        CHECK(executions.begin(code("bash", "key")).error().field() == "idempotency_key");
        CHECK(executions.count() == 1);
    }
    SECTION("another language starts") {
        REQUIRE(executions.begin(code("bash")).has_value());
        CHECK(kernels.all().size() == 2);
        CHECK(executions.list().size() == 2);
    }
    SECTION("refused ones leave nothing") {
        CHECK(executions.begin(code("cobol")).has_error());
        ExecutionRequest slow = code("");
        slow.timeout = setup.options.limits.wall + std::chrono::milliseconds(1);
        CHECK(executions.begin(slow).error().field() == "timeout_ms");
        ExecutionRequest file = code("");
        file.files.resize(1);
        file.files[0].path = "mounted";
        setup.mounted = {{"mounted", "input"}};
        CHECK(executions.begin(file).error().field() == "files/0/path");
        CHECK(executions.count() == 1);
    }
    SECTION("what is unknown cannot be stopped") {
        CHECK(executions.interrupt("exe_0").error().code() == ErrorCode::kNotFound);
        CHECK(executions.interrupt(first.value()->id()).has_value());
    }
}

TEST_CASE_METHOD(
    KernelsFixture, "the ids of executions are in the order of time", "[session][executions]") {
    std::string earlier = "exe_";
    std::set<std::string> all;
    for (int i = 0; i < 3; ++i) {
        const std::string id = executions.begin(code("")).value()->id();
        CHECK_THAT(id, Catch::Matches("exe_[0-9a-f]{24}"));
        CHECK(id.substr(0, 16) >= earlier);
        earlier = id.substr(0, 16);  // without what is random
        all.insert(id);
    }
    CHECK(all.size() == 3);
}

TEST_CASE_METHOD(
    KernelsFixture,
    "executions that belong together run all or not at all",
    "[session][executions]") {
    launch_main();
    const auto waiting = [this] { return kernels.waiting(); };
    const auto three = [] { return std::vector<ExecutionRequest>(3, code("")); };
    REQUIRE(executions.begin(code("")).has_value());
    while (waiting() < limits::kExecutionsQueuedMax - 2) {
        REQUIRE(executions.begin(code("")).has_value());
    }
    const std::size_t before = waiting();
    CHECK(executions.begin_all(three()).error().code() == ErrorCode::kLimitExceeded);
    CHECK(waiting() == before);
    for (const auto& execution : executions.list()) {
        if (execution->phase() == ExecutionPhase::kQueued) {
            CHECK(executions.interrupt(execution->id()).has_value());
            break;
        }
    }
    const auto all = executions.begin_all(three());
    REQUIRE(all.has_value());
    CHECK(all.value().size() == 3);
    CHECK(waiting() == limits::kExecutionsQueuedMax);
    std::vector<ExecutionRequest> mixed = {code("bash"), code("cobol")};
    CHECK(executions.begin_all(std::move(mixed)).has_error());
}

}  // namespace
}  // namespace cellkeep::session::test
