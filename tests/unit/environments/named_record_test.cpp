// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/named_record.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace cellkeep::test {
namespace {

using environments::NamedRecord;

NamedRecord make_record() {
    NamedRecord record;
    record.name = "geo";
    record.digest = "sha256:" + std::string(64, 'a');
    record.python = "3.11";
    record.index = "PyPI";
    record.bytes = 12;
    record.created_at = "2026-11-26T10:00:00.000Z";
    record.requirements = {"alpha"};
    record.packages = {{"alpha", "1.0"}, {"beta", "2.0"}};
    record.built = {"beta"};
    record.locked = true;
    return record;
}

TEST_CASE("the record of an environment comes back as it was written", "[environments]") {
    const NamedRecord record = make_record();
    const auto again = NamedRecord::parse(record.to_json());
    REQUIRE(again.has_value());
    CHECK(again.value().to_json() == record.to_json());
    CHECK(again.value().packages == record.packages);
    CHECK(again.value().built == record.built);
    CHECK(again.value().locked);
}

TEST_CASE("a record that says nothing of builds is of wheels only", "[environments]") {
    auto older = nlohmann::json::parse(make_record().to_json());
    older.erase("built");
    CHECK(NamedRecord::parse(older.dump()).value().built.empty());
    for (const nlohmann::json& bad :
         {nlohmann::json("beta"), nlohmann::json({1}), nlohmann::json({{"beta", "2.0"}})}) {
        CAPTURE(bad.dump());
        older["built"] = bad;
        CHECK(NamedRecord::parse(older.dump()).error().code() == ErrorCode::kProtocol);
    }
}

TEST_CASE("a record that says nothing of a lock is of none", "[environments]") {
    auto older = nlohmann::json::parse(make_record().to_json());
    older.erase("locked");
    CHECK_FALSE(NamedRecord::parse(older.dump()).value().locked);
    older["locked"] = "yes";
    CHECK(NamedRecord::parse(older.dump()).error().code() == ErrorCode::kProtocol);
}

TEST_CASE("a record without packages of Node.js has none", "[environments]") {
    NamedRecord record = make_record();
    CHECK_FALSE(nlohmann::json::parse(record.to_json()).contains("node"));
    CHECK(NamedRecord::parse(record.to_json()).value().node.wanted.empty());
    record.node = {{{"alpha", "^1"}}, {{"alpha", "1.2.0"}}, "npm's registry", true};
    const auto again = NamedRecord::parse(record.to_json());
    REQUIRE(again.has_value());
    CHECK(again.value().node.wanted == record.node.wanted);
    CHECK(again.value().node.packages == record.node.packages);
    CHECK(again.value().node.registry == record.node.registry);
    CHECK(again.value().node.locked);
    const auto whole = nlohmann::json::parse(record.to_json());
    for (const char* member : {"wanted", "packages", "registry", "locked"}) {
        CAPTURE(member);
        auto bad = whole;
        bad["node"][member] = 1;
        CHECK(NamedRecord::parse(bad.dump()).error().code() == ErrorCode::kProtocol);
        bad["node"].erase(member);
        CHECK(NamedRecord::parse(bad.dump()).error().code() == ErrorCode::kProtocol);
    }
    auto none = whole;
    none["node"] = "none";
    CHECK(NamedRecord::parse(none.dump()).error().code() == ErrorCode::kProtocol);
}

TEST_CASE("a record without packages of Debian has none", "[environments]") {
    NamedRecord record = make_record();
    CHECK_FALSE(nlohmann::json::parse(record.to_json()).contains("debian"));
    CHECK(NamedRecord::parse(record.to_json()).value().debian.wanted.empty());
    record.debian = {
        {"jq=1.6-2.1"},
        {{"jq", "1.6-2.1"}, {"libjq1", "1.6-2.1"}},
        {"jq"},
        "debian bookworm",
        {"/usr/lib/x"},
        "sha256:" + std::string(64, 'b')};
    const auto again = NamedRecord::parse(record.to_json());
    REQUIRE(again.has_value());
    CHECK(again.value().to_json() == record.to_json());
    CHECK(again.value().debian.wanted == record.debian.wanted);
    CHECK(again.value().debian.packages == record.debian.packages);
    CHECK(again.value().debian.scripts_not_run == record.debian.scripts_not_run);
    CHECK(again.value().debian.release == "debian bookworm");
    CHECK(again.value().debian.library_folders == record.debian.library_folders);
    const auto whole = nlohmann::json::parse(record.to_json());
    for (const char* member :
         {"wanted", "packages", "scripts_not_run", "release", "library_folders"}) {
        CAPTURE(member);
        auto without = whole;
        without["debian"].erase(member);
        CHECK(NamedRecord::parse(without.dump()).error().code() == ErrorCode::kProtocol);
        for (const nlohmann::json& bad : {nlohmann::json(1), nlohmann::json({1})}) {
            auto other = whole;
            other["debian"][member] = bad;
            CHECK(NamedRecord::parse(other.dump()).error().code() == ErrorCode::kProtocol);
        }
    }
    // A record of before this was noted has none.
    CHECK(again.value().debian.image_packages == record.debian.image_packages);
    auto former = whole;
    former["debian"].erase("image_packages");
    CHECK(NamedRecord::parse(former.dump()).value().debian.image_packages.empty());
    for (const nlohmann::json& bad :
         {nlohmann::json(1), nlohmann::json("sha256:b"), nlohmann::json()}) {
        auto other = whole;
        other["debian"]["image_packages"] = bad;
        CHECK(NamedRecord::parse(other.dump()).error().code() == ErrorCode::kProtocol);
    }
    for (const nlohmann::json& bad :
         {nlohmann::json(1), nlohmann::json::array(), nlohmann::json()}) {
        auto other = whole;
        other["debian"] = bad;
        CHECK(NamedRecord::parse(other.dump()).error().code() == ErrorCode::kProtocol);
    }
}

TEST_CASE("a record of an environment that is none is refused", "[environments]") {
    const auto good = nlohmann::json::parse(make_record().to_json());
    for (const auto& [field, value] : std::initializer_list<std::pair<const char*, nlohmann::json>>{
             {"version", 2},
             {"name", "../geo"},
             {"name", 1},
             {"digest", "sha256:1"},
             {"python", nullptr},
             {"index", 1},
             {"bytes", -1},
             {"bytes", "12"},
             {"created_at", 1},
             {"requirements", "alpha"},
             {"requirements", {1}},
             {"packages", {"alpha"}},
             {"packages", {{"alpha", 1}}}}) {
        CAPTURE(field, value.dump());
        auto bad = good;
        bad[field] = value;
        CHECK(NamedRecord::parse(bad.dump()).error().code() == ErrorCode::kProtocol);
        bad.erase(field);
        CHECK(NamedRecord::parse(bad.dump()).has_error());
    }
    CHECK(NamedRecord::parse("[]").has_error());
    CHECK(NamedRecord::parse(make_record().to_json().substr(0, 40)).has_error());
}

}  // namespace
}  // namespace cellkeep::test
