// SPDX-License-Identifier: Apache-2.0
//
// Spare sessions: made before a client asks for them.
#include "kernel-manager/environments/python_program.hpp"
#include "kernel-manager/service/spare_pool.hpp"
#include "tests/integration/session/session_fixture.hpp"
#include "tests/support/execution_texts.hpp"

#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using cellkeep::ErrorCode;
using cellkeep::session::ServiceConfig;
using cellkeep::session::SessionOptions;
using cellkeep::test::RecordingClient;
using cellkeep::test::result_of;
using cellkeep::test::ServiceFixture;
using cellkeep::test::text_file;
using namespace std::chrono_literals;

namespace {

ServiceConfig with_spares(std::size_t count) {
    ServiceConfig config = cellkeep::test::service_config();
    config.prespawn = {{count, {}}};
    return config;
}

/// A kernel that answers its first kernel_info_request and nothing else; then it runs `then_do`.
ServiceConfig with_odd_spare(const std::string& then_do) {
    ServiceConfig config = with_spares(1);
    auto spec = *config.catalog.find("python");
    spec.argv = {
        cellkeep::environments::kPythonProgram,
        "-Sc",
        R"(
import json, os, struct
def exactly(n):
    data = b''
    while len(data) < n: data += os.read(3, n - len(data)) or os._exit(0)
    return data
frame = exactly(struct.unpack('<I', exactly(4))[0])
at = struct.unpack_from('<8Q', frame)[1:]
header = json.dumps(dict(msg_id='a', session='odd', username='x', date='now',
                         msg_type='kernel_info_reply', version='5.5')).encode()
parts = [b'shell', header, frame[at[1]:at[2]], b'{}', b'{"status": "ok"}']
at = [8 * (len(parts) + 2)]
for part in parts: at.append(at[-1] + len(part))
frame = struct.pack('<%dQ' % (len(at) + 1), len(at), *at) + b''.join(parts)
os.write(3, struct.pack('<I', len(frame)) + frame)
)" + then_do};
    config.catalog.add(spec);
    return config;
}

}  // namespace

TEST_CASE("a spare is handed out with its new owner's options and replaced", "[session]") {
    ServiceFixture fixture(with_spares(1));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    CHECK(fixture.service.list().empty());
    SessionOptions options;
    options.kernel_id = "0b9d4f0e-6f0e-4a39-9f6c-1f2e3d4c5b6a";
    options.working_directory = "notebooks";
    options.env = {{"KERNEL_USERNAME", "ada"}, {"TZ", "Asia/Tokyo"}};
    options.files = {text_file("notebooks/data.txt", "42")};
    options.limits.wall = 5000ms;
    options.metadata = {{"name", "mine"}};
    options.owner = "ada";
    const auto session = fixture.open(options);
    CHECK(fixture.service.spares() == 0);
    CHECK(fixture.service.find(options.kernel_id) == session);
    const auto info = session->info();
    CHECK(info.owner == "ada");
    CHECK(info.metadata["name"] == "mine");
    CHECK(info.limits.wall == 5000ms);
    const char* const code =
        "import os, time\n"
        "print(os.environ['KERNEL_USERNAME'], time.tzname[0], os.getcwd(), "
        "open('data.txt').read())";
    const auto first = fixture.execute(*session, code);
    CHECK(first.stdout_text == "ada JST /workspace/notebooks 42\n");
    CHECK(first.execution_count == 1);
    REQUIRE(fixture.run(session->restart()).has_value());
    CHECK(fixture.execute(*session, code).stdout_text == first.stdout_text);
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    CHECK(fixture.service.list().size() == 1);
    const auto next = fixture.open();
    CHECK(
        result_of(fixture.execute(
            *next, "import os; 'KERNEL_USERNAME' in os.environ"))["text/plain"] == "False");
}

TEST_CASE("a sandbox that a client asked for once is ready for the next client", "[session]") {
    ServiceConfig config = with_spares(0);
    config.prespawn_most = 2;
    ServiceFixture fixture(std::move(config));
    SessionOptions options;
    options.limits.memory_mb = 300;
    const auto first = fixture.open(options);
    CHECK(fixture.service.spares() == 0);
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    const auto second = fixture.open(options);
    CHECK(result_of(fixture.execute(*second, "1 + 1"))["text/plain"] == "2");
    CHECK(second->info().limits.memory_mb == 300);
}

TEST_CASE("a request that no spare fits gets a new session", "[session]") {
    ServiceFixture fixture(with_spares(1));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    SessionOptions options;
    options.limits.memory_mb = 300;
    const auto other = fixture.open(options);
    CHECK(fixture.service.spares() == 1);
    SessionOptions fresh;
    fresh.env = {{"PYTHONHASHSEED", "0"}};
    const auto seeded = fixture.open(fresh);
    CHECK(fixture.service.spares() == 1);
}

TEST_CASE("spares give way when the server is full", "[session]") {
    ServiceConfig config = with_spares(5);
    config.sessions_max = 3;
    ServiceFixture fixture(std::move(config));
    // One place is always left for a client.
    fixture.run_until([&] { return fixture.service.spares() == 2; });
    SessionOptions options;
    options.limits.memory_mb = 300;  // fits none
    std::vector<std::shared_ptr<cellkeep::session::Session>> open;
    for (int i = 0; i < 3; ++i) {
        open.push_back(fixture.open(options));
    }
    CHECK(fixture.service.spares() == 0);
    CHECK(fixture.service.list().size() == 3);
    const auto refused = fixture.run(fixture.service.create(options));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kLimitExceeded);
    REQUIRE(fixture.service.remove(open[0]->id()).has_value());
    REQUIRE(fixture.service.remove(open[1]->id()).has_value());
    fixture.run_until([&] { return fixture.service.spares() == 1; });
}

TEST_CASE("options that a spare refuses are the caller's error, and cost one spare", "[session]") {
    ServiceFixture fixture(with_spares(1));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    SessionOptions options;
    options.files = {text_file("../etc/passwd", "x")};
    const auto refused = fixture.run(fixture.service.create(options));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    CHECK(fixture.service.list().empty());
    fixture.run_until([&] { return fixture.service.spares() == 1; });
}

TEST_CASE("a server ends while it makes a spare", "[session]") {
    ServiceFixture fixture(with_spares(2));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
}

TEST_CASE("a spare that dies is removed, and not replaced in a hot loop", "[session]") {
    std::vector<std::string> lines;
    auto config = with_odd_spare("os._exit(3)");
    config.log = [&](const std::string& line) { lines.push_back(line); };
    ServiceFixture fixture(std::move(config));
    fixture.run_until([&] { return !lines.empty(); });
    boost::asio::steady_timer timer(fixture.io, cellkeep::session::kSpareRetryFirst / 2);
    bool over = false;
    timer.async_wait([&](const boost::system::error_code& /*error*/) { over = true; });
    fixture.run_until([&] { return over; });
    CHECK(fixture.service.spares() == 0);
    CHECK(lines.size() == 1);
    fixture.run_until([&] { return lines.size() == 2; });
}

TEST_CASE("a spare that cannot be handed out costs time, but no session", "[session]") {
    std::vector<std::string> lines;
    auto config = with_odd_spare("while True: os.read(3, 100) or os._exit(0)");
    config.log = [&](const std::string& line) { lines.push_back(line); };
    config.start_timeout = 1500ms;
    ServiceFixture fixture(std::move(config));
    fixture.run_until([&] { return fixture.service.spares() == 1; });
    SessionOptions options;
    options.env = {{"NAME", "value"}};
    const auto session = fixture.open(options);
    CHECK(fixture.service.find(session->id()) == session);
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Catch::Contains("could not be handed out"));
}
