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

TEST_CASE("a record notes what packages the image has, or is an older version's", "[image]") {
    ImageRecord record = example_record();
    CHECK(ImageRecord::parse(record.to_json()).value().packages.empty());
    record.packages = "sha256:" + std::string(64, 'e');
    CHECK(ImageRecord::parse(record.to_json()).value().packages == record.packages);
    for (const nlohmann::json& wrong :
         {nlohmann::json("sha256:e"),
          nlohmann::json(std::string(64, 'e')),
          nlohmann::json(1),
          nlohmann::json()}) {
        auto changed = nlohmann::json::parse(record.to_json());
        changed["packages"] = wrong;
        CAPTURE(changed);
        CHECK(ImageRecord::parse(changed.dump()).has_error());
    }
}

std::string digits(std::size_t number) {
    std::string text = std::to_string(number);
    return std::string(64 - text.size(), '0') + text;
}

TEST_CASE("a record names other recipes that made it, so many and no more", "[image]") {
    ImageRecord record = example_record();
    for (std::size_t i = 0; i < kOtherRecipesMax + 2; ++i) {
        record.note_recipe({digits(i), digits(100 + i)});
    }
    CHECK(record.fingerprint == digits(kOtherRecipesMax + 1));
    CHECK(record.other_recipes.size() == kOtherRecipesMax);
    CHECK(record.made_by(digits(kOtherRecipesMax + 1)));
    CHECK(record.made_by(digits(1)));
    CHECK_FALSE(record.made_by(digits(0)));
    CHECK_FALSE(record.comes_from(digits(100)));
    CHECK(record.comes_from(digits(101)));
    CHECK_FALSE(record.comes_from(""));
    const auto read = ImageRecord::parse(record.to_json());
    REQUIRE(read.has_value());
    CHECK(read.value().to_json() == record.to_json());
}

TEST_CASE("of one origin a record names the newest recipe", "[image]") {
    ImageRecord record = example_record();
    record.note_recipe({digits(1), digits(7)});
    record.note_recipe({digits(2), digits(8)});
    record.note_recipe({digits(3), digits(7)});
    CHECK(record.made_by(digits(3)));
    CHECK(record.made_by(digits(2)));
    CHECK_FALSE(record.made_by(digits(1)));
    record.note_recipe({digits(3), digits(7)});
    CHECK(record.other_recipes.size() == 2);
}

TEST_CASE("a list of other recipes that is none is refused", "[image]") {
    ImageRecord record = example_record();
    record.note_recipe({digits(1), digits(7)});
    const auto good = nlohmann::json::parse(record.to_json());
    CHECK(ImageRecord::parse(good.dump()).has_value());
    const nlohmann::json item = good["other_recipes"][0];
    auto no_origin = item;
    no_origin.erase("origin");
    auto no_digest = item;
    no_digest["fingerprint"] = "1";
    auto odd_origin = item;
    odd_origin["origin"] = "somewhere";
    const nlohmann::json lists[] = {
        nlohmann::json(),
        nlohmann::json::object(),
        {1},
        {no_origin},
        {no_digest},
        {odd_origin},
        nlohmann::json(kOtherRecipesMax + 1, item)};
    for (const nlohmann::json& list : lists) {
        auto changed = good;
        changed["other_recipes"] = list;
        CAPTURE(list);
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
