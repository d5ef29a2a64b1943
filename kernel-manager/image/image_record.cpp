// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/image_record.hpp"

#include "kernel-manager/image/manifest.hpp"
#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <utility>

namespace cellkeep::image {

namespace {

constexpr int kVersion = 1;

bool is_sha256_text(const std::string& text) {
    return is_digest("sha256:" + text);
}

Error bad_record(const std::string& what) {
    return {ErrorCode::kProtocol, "image record: " + what};
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
    if (json.contains("origin")) {
        if (!json["origin"].is_string()) {
            return bad_record("origin is no string");
        }
        record.origin = json["origin"].get<std::string>();
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
        !is_sha256_text(record.identity) ||
        (!record.origin.empty() && !is_sha256_text(record.origin)) ||
        (record.format == Format::kErofs) != is_sha256_text(record.file_sha256)) {
        return bad_record("a digest that is none");
    }
    return record;
}

}  // namespace cellkeep::image
