// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/object_reader.hpp"

#include <cmath>
#include <utility>

namespace cellkeep::api {

namespace {

/// How many errors one answer lists: a body of a million unknown fields must not become a larger
/// answer.
constexpr std::size_t kFieldErrorsMax = 32;

/// The largest number up to which a double holds every whole number.
constexpr double kExactMax = 9007199254740992.0;

/// 3 and 3.0 are the same number (JSON Schema 2020-12, validation, 6.1.1); 3.5 is not whole.
std::optional<nlohmann::json> whole_number(const nlohmann::json& field) {
    if (field.is_number_integer()) {
        return field;
    }
    if (!field.is_number_float()) {
        return std::nullopt;
    }
    const auto value = field.get<double>();
    if (!(std::abs(value) <= kExactMax) || std::trunc(value) != value) {
        return std::nullopt;
    }
    if (value < 0) {
        return nlohmann::json(static_cast<std::int64_t>(value));
    }
    return nlohmann::json(static_cast<std::uint64_t>(value));
}

std::string plain_number(double value) {
    std::string text = nlohmann::json(value).dump();
    return text.size() > 2 && text.substr(text.size() - 2) == ".0" ? text.substr(0, text.size() - 2)
                                                                   : text;
}

}  // namespace

std::string child_pointer(std::string_view base, std::string_view name) {
    std::string pointer(base);
    pointer.push_back('/');
    for (const char c : name) {
        if (c == '~') {
            pointer += "~0";
        } else if (c == '/') {
            pointer += "~1";
        } else {
            pointer.push_back(c);
        }
    }
    return pointer;
}

ObjectReader::ObjectReader(const nlohmann::json& value, std::string pointer, FieldErrors& errors)
    : value_(value), pointer_(std::move(pointer)), errors_(errors) {
    if (!value_.is_object()) {
        errors_.push_back({pointer_, "must be an object"});
    }
}

bool ObjectReader::has(const char* name) const {
    return value_.is_object() && value_.contains(name);
}

const nlohmann::json* ObjectReader::take(const char* name) {
    known_.emplace(name);
    if (!has(name)) {
        return nullptr;
    }
    return &value_.at(name);
}

void ObjectReader::fail(std::string_view name, std::string message) {
    if (errors_.size() < kFieldErrorsMax) {
        errors_.push_back(
            {name.empty() ? pointer_ : child_pointer(pointer_, name), std::move(message)});
    }
}

std::optional<std::string> ObjectReader::text(const char* name, std::size_t bytes_max) {
    const nlohmann::json* field = take(name);
    if (field == nullptr) {
        return std::nullopt;
    }
    if (!field->is_string()) {
        fail(name, "must be a string");
        return std::nullopt;
    }
    const auto& value = field->get_ref<const std::string&>();
    if (value.size() > bytes_max) {
        fail(name, "must be at most " + std::to_string(bytes_max) + " bytes");
        return std::nullopt;
    }
    return value;
}

std::optional<bool> ObjectReader::boolean(const char* name) {
    const nlohmann::json* field = take(name);
    if (field == nullptr) {
        return std::nullopt;
    }
    if (!field->is_boolean()) {
        fail(name, "must be true or false");
        return std::nullopt;
    }
    return field->get<bool>();
}

std::optional<std::uint64_t> ObjectReader::integer(const char* name, const IntegerBounds& bounds) {
    const nlohmann::json* field = take(name);
    if (field == nullptr) {
        return std::nullopt;
    }
    const auto whole = whole_number(*field);
    if (!whole) {
        fail(name, "must be a whole number");
        return std::nullopt;
    }
    if (!whole->is_number_unsigned() || whole->get<std::uint64_t>() < bounds.minimum) {
        fail(name, "must be at least " + std::to_string(bounds.minimum));
        return std::nullopt;
    }
    const auto value = whole->get<std::uint64_t>();
    if (value > bounds.maximum) {
        fail(
            name,
            "must be at most " + std::to_string(bounds.maximum) + " (" +
                std::string(bounds.source) + ")");
        return std::nullopt;
    }
    return value;
}

std::optional<double> ObjectReader::number(const char* name, double minimum, double maximum) {
    const nlohmann::json* field = take(name);
    if (field == nullptr) {
        return std::nullopt;
    }
    if (!field->is_number()) {
        fail(name, "must be a number");
        return std::nullopt;
    }
    const auto value = field->get<double>();
    if (!std::isfinite(value) || value < minimum) {
        fail(name, "must be at least " + plain_number(minimum));
        return std::nullopt;
    }
    if (value > maximum) {
        fail(name, "must be at most " + plain_number(maximum) + " (the server's ceiling)");
        return std::nullopt;
    }
    return value;
}

const nlohmann::json* ObjectReader::object(const char* name) {
    const nlohmann::json* field = take(name);
    if (field != nullptr && !field->is_object()) {
        fail(name, "must be an object");
        return nullptr;
    }
    return field;
}

const nlohmann::json* ObjectReader::array(const char* name) {
    const nlohmann::json* field = take(name);
    if (field != nullptr && !field->is_array()) {
        fail(name, "must be an array");
        return nullptr;
    }
    return field;
}

const nlohmann::json* ObjectReader::any(const char* name) {
    return take(name);
}

void ObjectReader::finish() {
    if (!value_.is_object()) {
        return;
    }
    std::string names;
    for (const auto& name : known_) {
        names += (names.empty() ? "" : ", ") + name;
    }
    for (const auto& [name, field] : value_.items()) {
        if (known_.find(name) == known_.end()) {
            fail(name, "is not a field that this server knows; here it knows " + names);
        }
    }
}

}  // namespace cellkeep::api
