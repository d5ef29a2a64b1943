// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/named_record.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/image/manifest.hpp"
#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::environments {

namespace {

constexpr int kRecordVersion = 1;

Error bad(const std::string& what) {
    return {ErrorCode::kProtocol, "record of an environment: " + what};
}

bool is_text(const nlohmann::json& value) {
    return value.is_string();
}

bool is_texts_by_name(const nlohmann::json& value) {
    return value.is_object() && std::all_of(value.begin(), value.end(), is_text);
}

/// Records of environments without packages of Node.js have none.
Status read_node(const nlohmann::json& json, NodeRecord& node) {
    const auto found = json.find("node");
    if (found == json.end()) {
        return ok();
    }
    const auto member = [&found](const char* name) {
        return found->is_object() ? found->value(name, nlohmann::json()) : nlohmann::json();
    };
    const auto wanted = member("wanted");
    const auto packages = member("packages");
    const auto registry = member("registry");
    const auto locked = member("locked");
    if (!is_texts_by_name(wanted) || !is_texts_by_name(packages) || !registry.is_string() ||
        !locked.is_boolean()) {
        return bad("node is of another kind");
    }
    node.wanted = wanted.get<std::map<std::string, std::string>>();
    node.packages = packages.get<std::map<std::string, std::string>>();
    node.registry = registry.get<std::string>();
    node.locked = locked.get<bool>();
    return ok();
}

bool is_list_of_texts(const nlohmann::json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
}

/// Records of environments without packages of Debian have none.
Status read_debian(const nlohmann::json& json, DebianRecord& debian) {
    const auto found = json.find("debian");
    if (found == json.end()) {
        return ok();
    }
    const auto member = [&found](const char* name) {
        return found->is_object() ? found->value(name, nlohmann::json()) : nlohmann::json();
    };
    const std::array<std::pair<const char*, std::vector<std::string>*>, 3> lists{{
        {"wanted", &debian.wanted},
        {"scripts_not_run", &debian.scripts_not_run},
        {"library_folders", &debian.library_folders},
    }};
    for (const auto& [name, target] : lists) {
        const auto list = member(name);
        if (!is_list_of_texts(list)) {
            return bad("debian is of another kind");
        }
        *target = list.get<std::vector<std::string>>();
    }
    const auto packages = member("packages");
    const auto release = member("release");
    if (!is_texts_by_name(packages) || !release.is_string()) {
        return bad("debian is of another kind");
    }
    debian.packages = packages.get<std::map<std::string, std::string>>();
    debian.release = release.get<std::string>();
    // Records of versions that did not note it have none.
    const auto beside = found->value("image_packages", nlohmann::json(""));
    const auto* const digest = beside.get_ptr<const std::string*>();
    if (digest == nullptr || (!digest->empty() && !image::is_digest(*digest))) {
        return bad("debian is of another kind");
    }
    debian.image_packages = *digest;
    return ok();
}

}  // namespace

std::string NamedRecord::to_json() const {
    nlohmann::json json = {
        {"version", kRecordVersion},
        {"name", name},
        {"digest", digest},
        {"python", python},
        {"index", index},
        {"bytes", bytes},
        {"created_at", created_at},
        {"requirements", requirements},
        {"packages", packages},
        {"built", built},
        {"locked", locked},
        {"asked_python", asked_python},
    };
    if (!node.wanted.empty()) {
        json["node"] = {
            {"wanted", node.wanted},
            {"packages", node.packages},
            {"registry", node.registry},
            {"locked", node.locked}};
    }
    if (!debian.wanted.empty()) {
        json["debian"] = {
            {"wanted", debian.wanted},
            {"packages", debian.packages},
            {"scripts_not_run", debian.scripts_not_run},
            {"release", debian.release},
            {"library_folders", debian.library_folders},
            {"image_packages", debian.image_packages}};
    }
    return json.dump(2) + "\n";
}

Result<NamedRecord> NamedRecord::parse(std::string_view text) {
    BOOST_OUTCOME_TRY(const auto json, protocol::parse_json_object(text, "environment"));
    if (json.value("version", nlohmann::json()) != kRecordVersion) {
        return bad("not one of this version");
    }
    NamedRecord record;
    const std::array<std::pair<const char*, std::string*>, 5> texts{{
        {"name", &record.name},
        {"digest", &record.digest},
        {"python", &record.python},
        {"index", &record.index},
        {"created_at", &record.created_at},
    }};
    for (const auto& [name, target] : texts) {
        if (!json.contains(name) || !json[name].is_string()) {
            return bad(std::string(name) + " is missing or no string");
        }
        *target = json[name].get<std::string>();
    }
    const auto bytes = json.value("bytes", nlohmann::json());
    const auto requirements = json.value("requirements", nlohmann::json());
    const auto packages = json.value("packages", nlohmann::json());
    // Records of versions that built nothing have none.
    const auto built = json.value("built", nlohmann::json::array());
    // Records of versions that knew no locks have none.
    const auto locked = json.value("locked", nlohmann::json(false));
    const auto asked_python = json.value("asked_python", nlohmann::json(""));
    if (!bytes.is_number_unsigned() || !locked.is_boolean() || !asked_python.is_string() ||
        !requirements.is_array() || !packages.is_object() || !built.is_array() ||
        !std::all_of(built.begin(), built.end(), is_text) ||
        !std::all_of(requirements.begin(), requirements.end(), is_text) ||
        !std::all_of(packages.begin(), packages.end(), is_text)) {
        return bad("bytes, requirements, packages, built or locked is missing or of another kind");
    }
    if (check_name(record.name).has_error() || !image::is_digest(record.digest)) {
        return bad("a name or a digest that is none");
    }
    record.bytes = bytes.get<std::uint64_t>();
    record.requirements = requirements.get<std::vector<std::string>>();
    record.packages = packages.get<std::map<std::string, std::string>>();
    record.built = built.get<std::vector<std::string>>();
    record.locked = locked.get<bool>();
    record.asked_python = asked_python.get<std::string>();
    BOOST_OUTCOME_TRY(read_node(json, record.node));
    BOOST_OUTCOME_TRY(read_debian(json, record.debian));
    return record;
}

}  // namespace cellkeep::environments
