// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/bodies/language_choice.hpp"

#include "kernel-manager/api/bodies/request_body.hpp"

#include <algorithm>
#include <vector>

namespace cellkeep::api {

namespace {

constexpr std::size_t kLanguageTextBytesMax = 128;

std::string join(const std::vector<std::string>& names) {
    std::string joined;
    for (const std::string& name : names) {
        joined += (joined.empty() ? "" : ", ") + name;
    }
    return joined;
}

/// whose: "this server has". reasons: why others are not offered; may be null.
std::optional<std::string> read_one_of(
    ObjectReader& reader,
    const std::vector<std::string>& offered,
    const std::string& whose,
    const std::vector<session::NotOffered>* reasons) {
    auto language = reader.text("language", kLanguageTextBytesMax);
    if (!language || std::find(offered.begin(), offered.end(), *language) != offered.end()) {
        return language;
    }
    std::string wrong = "is not offered; " + whose + ": " + join(offered);
    if (reasons != nullptr) {
        const auto known = std::find_if(reasons->begin(), reasons->end(), [&](const auto& one) {
            return one.language == *language;
        });
        wrong += known == reasons->end() ? "" : ". " + *language + ": " + describe(*known);
    }
    reader.fail("language", wrong);
    return language;
}

}  // namespace

std::optional<std::string> read_language(
    ObjectReader& reader, const session::OfferedLanguages& running) {
    return read_one_of(reader, running.names, "this session has", running.not_offered.get());
}

std::optional<std::string> read_language(ObjectReader& reader, const Offer& offer) {
    return read_one_of(reader, offer.languages, "this server has", &offer.not_offered);
}

}  // namespace cellkeep::api
