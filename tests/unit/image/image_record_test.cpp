// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_record.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace cellkeep::image {
namespace {

ImageRecord example_record() {
    ImageRecord record;
    record.digest = "sha256:" + std::string(64, 'a');
    record.kind = Kind::kEnvironment;
    record.format = Format::kErofs;
    record.fingerprint = std::string(64, 'b');
    record.file_sha256 = std::string(64, 'c');
    record.identity = std::string(64, 'd');
    record.bytes = 42;
    record.built_at = "2026-11-22T04:00:00.000000Z";
    return record;
}

TEST_CASE("an image's record is read as it was written", "[image]") {
    const auto read = ImageRecord::parse(example_record().to_json());
    REQUIRE(read.has_value());
    CHECK(read.value().to_json() == example_record().to_json());
    CHECK(read.value().format == Format::kErofs);
    CHECK(read.value().kind == Kind::kEnvironment);
    CHECK(read.value().bytes == 42);
}

TEST_CASE("a record without an origin is an older version's", "[image]") {
    ImageRecord record = example_record();
    CHECK(ImageRecord::parse(record.to_json()).value().origin.empty());
    record.origin = std::string(64, 'e');
    CHECK(ImageRecord::parse(record.to_json()).value().origin == record.origin);
    for (const nlohmann::json& wrong : {nlohmann::json("e"), nlohmann::json(1), nlohmann::json()}) {
        auto changed = nlohmann::json::parse(record.to_json());
        changed["origin"] = wrong;
        CAPTURE(changed);
        CHECK(ImageRecord::parse(changed.dump()).has_error());
    }
}

TEST_CASE("what is no image record is refused", "[image]") {
    const auto good = nlohmann::json::parse(example_record().to_json());
    for (const auto& field : good.items()) {
        auto without = good;
        without.erase(field.key());
        CAPTURE(field.key());
        CHECK(ImageRecord::parse(without.dump()).has_error());
        auto other = good;
        other[field.key()] = nlohmann::json::array();
        CHECK(ImageRecord::parse(other.dump()).has_error());
    }
    const std::pair<const char*, nlohmann::json> changes[] = {
        {"version", 2},
        {"digest", std::string(64, 'a')},
        {"kind", "kernel"},
        {"format", "ext4"},
        {"format", "tree"},  // has no image file
        {"fingerprint", ""},
        {"file_sha256", ""},
        {"identity", "same"},
        {"bytes", -1},
        {"bytes", "42"}};
    for (const auto& [key, value] : changes) {
        auto changed = good;
        changed[key] = value;
        CAPTURE(key);
        CHECK(ImageRecord::parse(changed.dump()).has_error());
    }
    for (const char* text : {"", "{", "[]", "null", "{}", "\"x\""}) {
        CHECK(ImageRecord::parse(text).has_error());
    }
}

}  // namespace
}  // namespace cellkeep::image
