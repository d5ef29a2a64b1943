// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_record.hpp"

#include "kernel-manager/image/manifest.hpp"
#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::image {

namespace {

constexpr int kVersion = 1;
constexpr const char* kOtherRecipes = "other_recipes";

bool is_sha256_text(const std::string& text) {
    return is_digest("sha256:" + text);
}

Error bad_record(const std::string& what) {
    return {ErrorCode::kProtocol, "image record: " + what};
}

bool is_origin(const std::string& text) {
    return text.empty() || is_sha256_text(text);
}

nlohmann::json to_json_list(const std::vector<RecipeName>& recipes) {
    auto list = nlohmann::json::array();
    for (const RecipeName& recipe : recipes) {
        list.push_back({{"fingerprint", recipe.fingerprint}, {"origin", recipe.origin}});
    }
    return list;
}

Result<RecipeName> parse_recipe_name(const nlohmann::json& json) {
    for (const char* name : {"fingerprint", "origin"}) {
        if (!json.is_object() || !json.contains(name) || !json[name].is_string()) {
            return bad_record("a recipe without fingerprint and origin");
        }
    }
    RecipeName recipe{json["fingerprint"].get<std::string>(), json["origin"].get<std::string>()};
    if (!is_sha256_text(recipe.fingerprint) || !is_origin(recipe.origin)) {
        return bad_record("a recipe's digest that is none");
    }
    return recipe;
}

/// Versions before 0.2 noted none.
Result<std::vector<RecipeName>> parse_other_recipes(const nlohmann::json& record) {
    std::vector<RecipeName> recipes;
    const auto list = record.find(kOtherRecipes);
    if (list == record.end()) {
        return recipes;
    }
    if (!list->is_array() || list->size() > kOtherRecipesMax) {
        return bad_record(std::string(kOtherRecipes) + " is no short list");
    }
    for (const nlohmann::json& item : *list) {
        BOOST_OUTCOME_TRY(RecipeName recipe, parse_recipe_name(item));
        recipes.push_back(std::move(recipe));
    }
    return recipes;
}

}  // namespace

std::string_view to_string(Format format) {
    return format == Format::kErofs ? "erofs" : "tree";
}

std::string ImageRecord::to_json() const {
    nlohmann::json json = {
        {"version", kVersion},
        {"digest", digest},
        {"kind", to_string(kind)},
        {"format", to_string(format)},
        {"fingerprint", fingerprint},
        {"file_sha256", file_sha256},
        {"identity", identity},
        {"bytes", bytes},
        {"built_at", built_at},
    };
    if (!origin.empty()) {
        json["origin"] = origin;
    }
    if (!packages.empty()) {
        json["packages"] = packages;
    }
    if (!other_recipes.empty()) {
        json[kOtherRecipes] = to_json_list(other_recipes);
    }
    return json.dump(2) + "\n";
}

Result<ImageRecord> ImageRecord::parse(std::string_view text) {
    BOOST_OUTCOME_TRY(const auto json, protocol::parse_json(text, "image record"));
    if (!json.is_object() || json.value("version", nlohmann::json()) != kVersion) {
        return bad_record("not one of this version");
    }
    ImageRecord record;
    std::string kind;
    std::string format;
    const std::array<std::pair<const char*, std::string*>, 7> texts{{
        {"digest", &record.digest},
        {"kind", &kind},
        {"format", &format},
        {"fingerprint", &record.fingerprint},
        {"file_sha256", &record.file_sha256},
        {"identity", &record.identity},
        {"built_at", &record.built_at},
    }};
    for (const auto& [name, target] : texts) {
        if (!json.contains(name) || !json[name].is_string()) {
            return bad_record(std::string(name) + " is missing or no string");
        }
        *target = json[name].get<std::string>();
    }
    // Older versions noted none.
    const std::array<std::pair<const char*, std::string*>, 2> later{
        {{"origin", &record.origin}, {"packages", &record.packages}}};
    for (const auto& [name, target] : later) {
        if (!json.contains(name)) {
            continue;
        }
        if (!json[name].is_string()) {
            return bad_record(std::string(name) + " is no string");
        }
        *target = json[name].get<std::string>();
    }
    if (!json.contains("bytes") || !json["bytes"].is_number_unsigned()) {
        return bad_record("bytes is missing or no number");
    }
    record.bytes = json["bytes"].get<std::uint64_t>();
    if ((kind != "environment" && kind != "programs") || (format != "erofs" && format != "tree")) {
        return bad_record("of an unknown kind or format");
    }
    record.kind = kind == "environment" ? Kind::kEnvironment : Kind::kPrograms;
    record.format = format == "erofs" ? Format::kErofs : Format::kTree;
    if (!is_digest(record.digest) || !is_sha256_text(record.fingerprint) ||
        !is_sha256_text(record.identity) || !is_origin(record.origin) ||
        (!record.packages.empty() && !is_digest(record.packages)) ||
        (record.format == Format::kErofs) != is_sha256_text(record.file_sha256)) {
        return bad_record("a digest that is none");
    }
    BOOST_OUTCOME_TRY(record.other_recipes, parse_other_recipes(json));
    return record;
}

bool ImageRecord::made_by(const std::string& fingerprint_of_recipe) const {
    return fingerprint == fingerprint_of_recipe ||
           std::any_of(other_recipes.begin(), other_recipes.end(), [&](const RecipeName& other) {
               return other.fingerprint == fingerprint_of_recipe;
           });
}

bool ImageRecord::comes_from(const std::string& origin_of_recipe) const {
    if (origin_of_recipe.empty()) {
        return false;
    }
    return origin == origin_of_recipe ||
           std::any_of(other_recipes.begin(), other_recipes.end(), [&](const RecipeName& other) {
               return other.origin == origin_of_recipe;
           });
}

void ImageRecord::note_recipe(const RecipeName& recipe) {
    if (recipe.fingerprint != fingerprint) {
        other_recipes.insert(other_recipes.begin(), {fingerprint, origin});
    }
    fingerprint = recipe.fingerprint;
    origin = recipe.origin;
    // An older state of the same place is of no use to it any more.
    std::erase_if(other_recipes, [&](const RecipeName& other) {
        return other.fingerprint == fingerprint || (!origin.empty() && other.origin == origin);
    });
    if (other_recipes.size() > kOtherRecipesMax) {
        other_recipes.resize(kOtherRecipesMax);
    }
}

}  // namespace cellkeep::image
