// SPDX-License-Identifier: Apache-2.0
//
// Activity, culling, and what a session may ask for about its identity and place.
#include "protocol/limits.hpp"
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>

using cellkeep::ErrorCode;
using cellkeep::Result;
using cellkeep::protocol::Channel;
using cellkeep::protocol::Message;
using cellkeep::session::Session;
using cellkeep::session::SessionOptions;
using cellkeep::test::execute_request;
using cellkeep::test::make_request;
using cellkeep::test::RecordingClient;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using cellkeep::test::text_file;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

const char* const kUuid = "0b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6a";

/// Runs the server for a while.
void run_for(ServiceFixture& fixture, std::chrono::milliseconds time) {
    boost::asio::steady_timer timer(fixture.io, time);
    bool over = false;
    timer.async_wait([&](const boost::system::error_code& /*error*/) { over = true; });
    fixture.run_until([&] { return over; });
}

SessionOptions short_lived() {
    SessionOptions options;
    options.limits.idle = 1s;
    return options;
}

}  // namespace

TEST_CASE("looking at a session does not move its last activity, work does", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open();
    const auto client = std::make_shared<RecordingClient>();
    const auto born = session->info().last_activity;
    const auto connected = session->connect_client();
    session->subscribe(client.get());
    for (const char* type : {"kernel_info_request", "comm_info_request"}) {
        const Message look = make_request(Channel::kShell, type, json::object());
        session->submit(look, client);
        CHECK(fixture.answer(*client, look)["status"] == "ok");
        fixture.run_until([&] { return client->states_of(&look).size() == 2; });
    }
    const Message usage = make_request(Channel::kControl, "usage_request", json::object());
    session->submit(usage, client);
    fixture.answer(*client, usage);
    CHECK(session->info().last_activity == born);
    fixture.execute(*session, "1");
    const auto worked = session->info().last_activity;
    CHECK(worked > born);
    session->touch();  // as for a file that is written
    CHECK(session->info().last_activity > worked);
    session->unsubscribe(client.get());
}

TEST_CASE("a connected client keeps an idle session, or learns why it ended", "[session]") {
    ServiceFixture fixture;
    const auto kept = fixture.open(short_lived());
    auto connection = kept->connect_client();
    SessionOptions options = short_lived();
    options.cull.connected = true;
    const auto culled = fixture.open(options);
    const auto client = std::make_shared<RecordingClient>();
    culled->subscribe(client.get());
    const auto other = culled->connect_client();
    fixture.run_until([&] { return fixture.service.find(culled->id()) == nullptr; });
    CHECK(fixture.service.find(kept->id()) != nullptr);
    REQUIRE(client->of_type("stream").size() == 1);
    const json told = client->of_type("stream")[0].parse_content().value();
    CHECK_THAT(
        told["text"].get<std::string>(), Catch::Contains("No client used the session for 1 s"));
    const json dead = client->of_type("status").back().parse_content().value();
    CHECK(dead["execution_state"] == "dead");
    CHECK(dead["reason"] == "culled");
    culled->unsubscribe(client.get());
    run_for(fixture, 1200ms);
    REQUIRE(fixture.service.find(kept->id()) != nullptr);
    CHECK(kept->info().connections == 1);
    connection.reset();
    fixture.run_until([&] { return fixture.service.find(kept->id()) == nullptr; });
}

TEST_CASE("a running cell keeps a session, and idle counts from its end", "[session]") {
    ServiceFixture fixture;
    const auto session = fixture.open(short_lived());
    const auto done = fixture.execute(*session, "import time; time.sleep(1.6); print('done')");
    CHECK(done.stdout_text == "done\n");
    const auto ended = std::chrono::steady_clock::now();
    fixture.run_until([&] { return fixture.service.find(session->id()) == nullptr; });
    CHECK(std::chrono::steady_clock::now() - ended >= 900ms);
}

TEST_CASE("a restart of a busy session leaves it to be culled", "[session]") {
    ServiceFixture fixture;
    SessionOptions options = short_lived();
    options.limits.lifetime = 0s;
    const auto session = fixture.open(options);
    const auto client = std::make_shared<RecordingClient>();
    session->submit(execute_request("import time; time.sleep(25)"), client);
    run_for(fixture, 1500ms);
    REQUIRE(fixture.run(session->restart()).has_value());
    fixture.run_until([&] { return fixture.service.find(session->id()) == nullptr; });
}

TEST_CASE("busy sessions are culled where the rules say so", "[session]") {
    ServiceFixture fixture;
    SessionOptions options = short_lived();
    options.cull.busy = true;
    const auto session = fixture.open(options);
    const auto client = std::make_shared<RecordingClient>();
    const Message cell = execute_request("import time; time.sleep(25)");
    session->submit(cell, client);
    const json reply = fixture.answer(*client, cell);
    CHECK_THAT(reply["evalue"].get<std::string>(), Catch::Contains("No client used the session"));
    fixture.run_until([&] { return fixture.service.find(session->id()) == nullptr; });
}

TEST_CASE("idle 0 is never, and a session of great age ends", "[session]") {
    ServiceFixture fixture;
    SessionOptions endless;
    endless.limits.idle = 0s;
    endless.limits.lifetime = 0s;
    const auto stays = fixture.open(endless);
    SessionOptions old;
    old.limits.idle = 0s;
    old.limits.lifetime = 1s;
    const auto goes = fixture.open(old);
    fixture.run_until([&] { return fixture.service.find(goes->id()) == nullptr; });
    CHECK(fixture.service.find(stays->id()) != nullptr);
}

TEST_CASE("a session that is dead for good is culled, also with a client connected", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.limits.idle = 2s;
    const auto session = fixture.open(options);
    const auto connection = session->connect_client();
    for (std::size_t i = 0; i <= cellkeep::limits::kRestartsMax; ++i) {
        fixture.execute(*session, "import os; os._exit(1)");
    }
    CHECK(session->state() == cellkeep::session::KernelState::kDead);
    fixture.run_until([&] { return fixture.service.find(session->id()) == nullptr; });
}

TEST_CASE(
    "a kernel id may be chosen and is unique, also while the kernel is starting", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.kernel_id = kUuid;
    std::array<std::optional<Result<std::shared_ptr<Session>>>, 3> results;
    for (auto& result : results) {
        fixture.spawn(fixture.service.create(options), result);
    }
    fixture.run_until(
        [&] { return results[0].has_value() && results[1].has_value() && results[2].has_value(); });
    int made = 0;
    for (const auto& result : results) {
        made += result->has_value() ? 1 : 0;
        if (result->has_error()) {
            CHECK(result->error().code() == ErrorCode::kConflict);
        }
    }
    CHECK(made == 1);
    REQUIRE(fixture.service.find(kUuid) != nullptr);
    CHECK(fixture.service.find(kUuid)->info().kernel_id == kUuid);
    REQUIRE(fixture.service.remove(kUuid).has_value());
    fixture.open(options);
    options.kernel_id = "not-a-uuid";
    const auto refused = fixture.run(fixture.service.create(options));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("a kernel starts in its working directory, also after a restart", "[session]") {
    ServiceFixture fixture;
    SessionOptions options;
    options.working_directory = "deep/er";
    options.files = {text_file("deep/er/data.txt", "42")};
    const auto session = fixture.open(options);
    const char* const code = "import os; print(os.getcwd(), open('data.txt').read())";
    CHECK(fixture.execute(*session, code).stdout_text == "/workspace/deep/er 42\n");
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(fixture.execute(*session, code).stdout_text == "/workspace/deep/er 42\n");
    // If the code removes its directory, the next interpreter starts in the workspace.
    fixture.execute(
        *session,
        "import shutil; os.chdir('/workspace'); shutil.rmtree('deep'); open('deep', 'w').close()");
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(
        result_of(fixture.execute(*session, "import os; os.getcwd()"))["text/plain"] ==
        "'/workspace'");
    for (const char* wrong : {"/etc", "..", "a/../../b"}) {
        INFO(wrong);
        options.working_directory = wrong;
        const auto refused = fixture.run(fixture.service.create(options));
        REQUIRE(refused.has_error());
        CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    }
}
