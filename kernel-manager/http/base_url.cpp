// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/base_url.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::http {

Result<BaseUrl> BaseUrl::parse(std::string_view text) {
    const auto refuse = [text] {
        return Error(
            ErrorCode::kInvalidArgument,
            "base-url: \"" + std::string(text) + "\" is not a path",
            "Give the path that comes before every address, for example /user/anna/.");
    };
    BaseUrl base;
    std::string path =
        "/" + std::string(text.substr(std::min(text.find_first_not_of('/'), text.size())));
    while (path.size() > 1 && path.back() == '/') {
        path.pop_back();
    }
    if (path == "/") {
        return base;
    }
    auto target = parse_target(path);
    const bool plain = path.find_first_of("?#\\ \t\r\n\"<>") == std::string::npos;
    if (target.has_error() || !plain) {
        return refuse();
    }
    base.segments_ = std::move(target).value().segments;
    for (const std::string& segment : base.segments_) {
        if (segment.empty()) {
            return refuse();
        }
    }
    base.text_ = path + "/";
    return base;
}

BaseUrl::Place BaseUrl::enter(Target& target) const {
    auto& segments = target.segments;
    if (segments_.empty()) {
        return Place::kInside;
    }
    if (segments.size() < segments_.size() ||
        !std::equal(segments_.begin(), segments_.end(), segments.begin())) {
        return Place::kOutside;
    }
    if (segments.size() == segments_.size()) {
        return Place::kBare;
    }
    const auto rest = segments.begin() + static_cast<std::ptrdiff_t>(segments_.size());
    segments.erase(segments.begin(), rest);
    if (segments.size() == 1 && segments.front().empty()) {
        segments.clear();  // the base itself is "/"
    }
    return Place::kInside;
}

std::string BaseUrl::qualify(std::string path) const {
    if (path.empty() || path.front() != '/' || path.substr(0, text_.size()) == text_) {
        return path;
    }
    return text_ + path.substr(1);
}

}  // namespace cellkeep::http
