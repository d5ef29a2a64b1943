// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/message/headers.hpp"

#include <algorithm>

namespace cellkeep::http {

namespace {

char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool equals_ignoring_case(std::string_view left, std::string_view right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
        return to_lower(a) == to_lower(b);
    });
}

void Headers::add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::set(std::string name, std::string value) {
    const auto same = [&name](const auto& field) {
        return equals_ignoring_case(field.first, name);
    };
    fields_.erase(std::remove_if(fields_.begin(), fields_.end(), same), fields_.end());
    add(std::move(name), std::move(value));
}

const std::string* Headers::find(std::string_view name) const {
    for (const auto& [field, value] : fields_) {
        if (equals_ignoring_case(field, name)) {
            return &value;
        }
    }
    return nullptr;
}

std::string_view Headers::get(std::string_view name) const {
    const std::string* value = find(name);
    return value == nullptr ? std::string_view() : std::string_view(*value);
}

}  // namespace cellkeep::http
