// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/wire/fields.hpp"

#include "kernel-manager/e2b/limits.hpp"
#include "protocol/json.hpp"

#include <utility>

namespace cellkeep::e2b {

Fields::Fields(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
    if (!object_.is_object()) {
        fail("", "must be an object");
    }
}

const nlohmann::json* Fields::any(const char* name) const {
    if (!object_.is_object()) {
        return nullptr;
    }
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> Fields::text(const char* name, std::size_t bytes_max) {
    const nlohmann::json* value = any(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_string()) {
        fail(name, "must be a string");
        return std::nullopt;
    }
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > bytes_max) {
        fail(name, "must be at most " + std::to_string(bytes_max) + " bytes");
        return std::nullopt;
    }
    if (text.find('\0') != std::string::npos) {
        fail(name, "must not contain NUL");
        return std::nullopt;
    }
    return text;
}

std::optional<bool> Fields::boolean(const char* name) {
    const nlohmann::json* value = any(name);
    if (value != nullptr && !value->is_boolean()) {
        fail(name, "must be true or false");
        return std::nullopt;
    }
    return value == nullptr ? std::nullopt : std::optional(value->get<bool>());
}

std::optional<std::int64_t> Fields::integer(
    const char* name, std::int64_t least, std::int64_t most) {
    const nlohmann::json* value = any(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    // JSON knows one kind of number: 300.0 is 300.
    const double number = value->is_number() ? value->get<double>() : 0.5;
    const bool whole = number >= static_cast<double>(least) &&
                       number <= static_cast<double>(most) &&
                       number == static_cast<double>(static_cast<std::int64_t>(number));
    if (!whole) {
        fail(
            name,
            "must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
        return std::nullopt;
    }
    return static_cast<std::int64_t>(number);
}

const nlohmann::json* Fields::object(const char* name) {
    const nlohmann::json* value = any(name);
    if (value != nullptr && !value->is_object()) {
        fail(name, "must be an object");
        return nullptr;
    }
    return value;
}

const nlohmann::json* Fields::array(const char* name) {
    const nlohmann::json* value = any(name);
    if (value != nullptr && !value->is_array()) {
        fail(name, "must be an array");
        return nullptr;
    }
    return value;
}

std::map<std::string, std::string> Fields::texts(
    const char* name, std::size_t entries_max, std::size_t bytes_max) {
    std::map<std::string, std::string> all;
    const nlohmann::json* value = object(name);
    if (value == nullptr) {
        return all;
    }
    if (value->size() > entries_max) {
        fail(name, "must have at most " + std::to_string(entries_max) + " members");
        return all;
    }
    std::size_t bytes = 0;
    for (const auto& [key, item] : value->items()) {
        if (!item.is_string()) {
            fail(name, "must have strings as its values");
            return {};
        }
        const auto& text = item.get_ref<const std::string&>();
        bytes += key.size() + text.size();
        if (bytes > bytes_max || text.find('\0') != std::string::npos) {
            fail(name, "must be at most " + std::to_string(bytes_max) + " bytes, without NUL");
            return {};
        }
        all.emplace(key, text);
    }
    return all;
}

void Fields::fail(std::string_view name, std::string_view why) {
    if (!fault_) {
        std::string place = where_;
        place += !where_.empty() && !name.empty() ? "." : "";
        place += name;
        fault_ = (place.empty() ? "The body" : "\"" + place + "\"") + " " + std::string(why) + ".";
    }
}

Error Fields::error() const {
    return {ErrorCode::kInvalidArgument, *fault_};
}

Result<nlohmann::json> parse_body(const std::string& text) {
    if (text.empty()) {
        return nlohmann::json::object();
    }
    auto body =
        protocol::parse_json(text, "body", protocol::RepeatedKeys::kRefused, kBodyValuesMax);
    if (body.has_error()) {
        return Error(ErrorCode::kInvalidArgument, body.error().message());
    }
    return std::move(body).value();
}

}  // namespace cellkeep::e2b
