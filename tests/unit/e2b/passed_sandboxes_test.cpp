// SPDX-License-Identifier: Apache-2.0
//
// What one program writes of E2B's sandboxes, and the next one reads or refuses.
#include "kernel-manager/e2b/passing/passed_sandboxes.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "kernel-manager/e2b/wire/sandbox_tokens.hpp"
#include "protocol/base64.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace cellkeep::e2b {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Moment = SandboxRecord::Clock::time_point;

const std::string kOne = "ses_0123456789abcdef01234567";
const std::string kOther = "ses_76543210fedcba9876543210";

json through_bytes(const PassedSandboxes& passed) {
    return json::from_cbor(json::to_cbor(write_sandboxes(passed)));
}

PassedSandboxes passed_example() {
    PassedSandboxes passed;
    passed.token_key = SandboxTokens::create().value().key();
    SandboxRecord record;
    record.template_id = "code-interpreter-v1";
    record.ends_at = SandboxRecord::Clock::now() + 60s;
    record.lives = 300s;
    record.pause_at_end = true;
    record.cpu_seen = 5ms;
    record.looked_at = SandboxRecord::Clock::now();
    passed.records[kOne] = record;
    passed.records[kOther] = {};
    Contexts contexts;
    for (const char* language : {"python", "python", "bash"}) {
        REQUIRE(contexts.make(kOne, language, "/home/user").has_value());
    }
    session::SessionInfo info;
    info.id = kOne;
    REQUIRE(contexts.remove(info, "python-1").has_value());
    passed.contexts = contexts.all();
    SnapshotBook snapshots;
    (void)snapshots.keep(kOne, "ckp_a", "ann", "base");
    (void)snapshots.keep(kOne, "ckp_b", "ann", std::nullopt);
    passed.snapshots = snapshots.all();
    Idempotency keys;
    keys.begin("ann\nkey-1", "digest");
    keys.finish("ann\nkey-1", kOne);
    keys.begin("ann\nkey-2", "digest");  // it is still being made
    passed.keys = keys.pass_on();
    passed.debug_session = kOther;
    passed.deadlines = {{kOne, "prc_1", SandboxRecord::Clock::now() + 5s}};
    return passed;
}

bool is_refused(const json& text) {
    const auto read = read_sandboxes(text);
    return read.has_error() && read.error().code() == ErrorCode::kProtocol;
}

json with(const char* place, const json& value) {
    json text = through_bytes(passed_example());
    text[json::json_pointer(place)] = value;
    return text;
}

TEST_CASE("what passes of sandboxes comes as it went", "[e2b][passing]") {
    const PassedSandboxes before = passed_example();
    const auto read = read_sandboxes(through_bytes(before));
    REQUIRE(read.has_value());
    const PassedSandboxes& after = read.value();
    CHECK(write_sandboxes(after) == write_sandboxes(before));
    CHECK(after.token_key == before.token_key);
    CHECK(after.records.at(kOne).ends_at == before.records.at(kOne).ends_at);
    CHECK(after.records.at(kOne).lives == 300s);
    CHECK(after.records.at(kOne).pause_at_end);
    CHECK_FALSE(after.records.at(kOne).resume_on_use);
    CHECK_FALSE(after.records.at(kOther).ends_at.has_value());
    REQUIRE(after.snapshots.size() == 2);
    CHECK(after.snapshots[0].id == before.snapshots[0].id);
    CHECK(after.snapshots[0].name == "base");
    CHECK_FALSE(after.snapshots[1].name.has_value());
    REQUIRE(after.keys.size() == 1);
    CHECK(after.keys[0].second.session_id == kOne);
    CHECK(after.debug_session == kOther);
    CHECK(after.deadlines[0].due == before.deadlines[0].due);
}

TEST_CASE("a front that knows no sandbox passes its key", "[e2b][passing]") {
    PassedSandboxes before;
    before.token_key = std::string(SandboxTokens::kKeyBytes, '\xff');
    const auto read = read_sandboxes(through_bytes(before));
    REQUIRE(read.has_value());
    CHECK(read.value().token_key == before.token_key);
    CHECK(read.value().records.empty());
    CHECK(read.value().debug_session.empty());
}

TEST_CASE("tokens of a sandbox are good with the same key alone", "[e2b][passing]") {
    using Use = SandboxTokens::Use;
    const SandboxTokens before = SandboxTokens::create().value();
    SandboxTokens after = SandboxTokens::create().value();
    for (const Use use : {Use::kEnvd, Use::kTraffic}) {
        CHECK_FALSE(after.fits(use, kOne, before.token(use, kOne)));
    }
    for (const std::string& key : {std::string(), before.key() + "x", before.key().substr(1)}) {
        CHECK(after.use_key(key).error().code() == ErrorCode::kProtocol);
    }
    CHECK_FALSE(after.fits(Use::kEnvd, kOne, before.token(Use::kEnvd, kOne)));
    REQUIRE(after.use_key(before.key()).has_value());
    for (const Use use : {Use::kEnvd, Use::kTraffic}) {
        CHECK(after.fits(use, kOne, before.token(use, kOne)));
        CHECK_FALSE(after.fits(use, kOther, before.token(use, kOne)));
    }
}

TEST_CASE("contexts go on with their names and numbers", "[e2b][passing]") {
    Contexts contexts;
    contexts.go_on(read_sandboxes(through_bytes(passed_example())).value().contexts);
    const auto again = contexts.make(kOne, "python", "/home/user");
    REQUIRE(again.has_value());
    CHECK(again.value().reused);
    CHECK(again.value().context.interpreter == "python:2");
    const auto next = contexts.make(kOne, "python", "/home/user");
    CHECK(next.value().context.interpreter == "python:4");
    CHECK(next.value().context.id == "python-5");
}

TEST_CASE("a request that is sent again after an upgrade gives its sandbox", "[e2b][passing]") {
    Idempotency keys(2);
    keys.go_on(read_sandboxes(through_bytes(passed_example())).value().keys);
    REQUIRE(keys.find("ann\nkey-1") != nullptr);
    CHECK(keys.find("ann\nkey-1")->session_id == kOne);
    CHECK(keys.find("ann\nkey-2") == nullptr);
    keys.begin("ann\nkey-3", "d");
    keys.begin("ann\nkey-4", "d");
    CHECK(keys.find("ann\nkey-1") == nullptr);  // it was the oldest
}

TEST_CASE("what belongs to sessions that did not pass goes", "[e2b][passing]") {
    PassedSandboxes passed = passed_example();
    keep_only(passed, [](const std::string& id) { return id == kOther; });
    CHECK(passed.records.size() == 1);
    CHECK(passed.records.contains(kOther));
    CHECK(passed.contexts.empty());
    CHECK(passed.snapshots.empty());
    CHECK(passed.deadlines.empty());
    CHECK(passed.debug_session == kOther);
    CHECK(passed.keys.size() == 1);  // the same key still means the same request
    keep_only(passed, [](const std::string& /*id*/) { return false; });
    CHECK(passed.debug_session.empty());
}

TEST_CASE("values of sandboxes of another form are refused", "[e2b][passing]") {
    for (const json& wrong : {json(), json(5), json("{}"), json::array(), json::object()}) {
        CAPTURE(wrong);
        CHECK(is_refused(wrong));
    }
    const json good = through_bytes(passed_example()).flatten();
    for (const auto& [at, value] : good.items()) {
        CAPTURE(at);
        const json::json_pointer place(at);
        json without = good.unflatten();
        without[place.parent_pointer()].erase(place.back());
        CHECK(is_refused(without));
        json other = good.unflatten();
        other[place] = json::array({true});
        CHECK(is_refused(other));
    }
}

TEST_CASE("values that no sandbox has are refused", "[e2b][passing]") {
    const auto far = [](std::chrono::nanoseconds time) {
        return (SandboxRecord::Clock::now() + time).time_since_epoch().count();
    };
    const std::vector<std::pair<const char*, json>> wrong = {
        {"/token_key", "AAAA"},
        {"/token_key", ""},
        {"/sandboxes/0/session", "0123456789abcdef01234567"},
        {"/sandboxes/0/session", "ses_x"},
        {"/sandboxes/0/session", kOther},
        {"/sandboxes/0/template", std::string(kTemplateBytesMax + 1, 'a')},
        {"/sandboxes/0/lives", -1},
        {"/sandboxes/0/lives", kTimeoutMax.count() + 1},
        {"/sandboxes/0/lives", 1.5},
        {"/sandboxes/0/ends_at", far(kTimeoutMax + 1h)},
        {"/sandboxes/0/ends_at", "soon"},
        {"/sandboxes/0/cpu_seen", -1},
        {"/contexts/0/session", "../x"},
        {"/contexts/0/contexts/0/interpreter", "python:1"},
        {"/contexts/0/contexts/0/interpreter", "python:4"},
        {"/contexts/0/contexts/0/interpreter", "python:2"},
        {"/contexts/0/contexts/0/interpreter", "python"},
        {"/contexts/0/contexts/0/id", "python-4"},
        {"/contexts/0/contexts/0/id", "python-3x"},
        {"/contexts/0/contexts/0/id", "bash-1"},
        {"/contexts/0/contexts/0/language", ""},
        {"/contexts/0/contexts/0/directory", "home"},
        {"/contexts/0/contexts/0/directory", "/" + std::string(kContextDirectoryBytesMax, 'a')},
        {"/contexts/0/last/python", -1},
        {"/contexts/0/last/python", 2},
        {"/contexts/0/last/", 1},
        {"/snapshots/0/session", ""},
        {"/snapshots/0/checkpoint", ""},
        {"/snapshots/0/name", ""},
        {"/keys/0/key", "key-1"},
        {"/keys/0/key", "ann\nKEY"},
        {"/keys/0/key", "ann\n"},
        {"/keys/0/session", ""},
        {"/debug_session", "debug"},
        {"/deadlines/0/due", far(kCommandTimeMax + 1h)},
        {"/deadlines/0/command", ""}};
    for (const auto& [place, value] : wrong) {
        CAPTURE(place, value);
        CHECK(is_refused(with(place, value)));
    }
    CHECK_FALSE(is_refused(with("/sandboxes/0/lives", kTimeoutMax.count())));
    CHECK_FALSE(is_refused(with("/sandboxes/0/ends_at", far(kTimeoutMax - 1h))));
    CHECK_FALSE(is_refused(with("/sandboxes/0/template", std::string(kTemplateBytesMax, 'a'))));
}

TEST_CASE("as much passes of sandboxes as there may be, and no more", "[e2b][passing]") {
    PassedSandboxes passed = passed_example();
    passed.snapshots.assign(kSnapshotsMax, passed.snapshots.front());
    CHECK_FALSE(is_refused(through_bytes(passed)));
    passed.snapshots.push_back(passed.snapshots.front());
    CHECK(is_refused(through_bytes(passed)));
    passed.snapshots.clear();
    passed.keys.assign(kIdempotencyKeysMax, passed.keys.front());
    CHECK_FALSE(is_refused(through_bytes(passed)));
    passed.keys.push_back(passed.keys.front());
    CHECK(is_refused(through_bytes(passed)));
    passed.keys.clear();
    Contexts contexts;
    for (std::size_t i = 0; i < kContextsMax; ++i) {
        REQUIRE(contexts.make(kOne, "python", "/").has_value());
    }
    passed.contexts = contexts.all();
    CHECK_FALSE(is_refused(through_bytes(passed)));
    Contexts::Own& own = passed.contexts.at(kOne);
    own.contexts.push_back(own.contexts.back());
    own.contexts.back().id = "python-" + std::to_string(++own.last[""]);
    own.contexts.back().interpreter = "python:" + std::to_string(++own.last["python"]);
    CHECK(is_refused(through_bytes(passed)));
}

}  // namespace
}  // namespace cellkeep::e2b
