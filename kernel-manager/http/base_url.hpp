// SPDX-License-Identifier: Apache-2.0
//
// The part of every address that a hub or a proxy put in front ("/user/anna/"). Pure; set up at
// start.
#pragma once

#include "kernel-manager/http/message/target.hpp"
#include "protocol/support/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::http {

class BaseUrl {
 public:
    /// "/".
    BaseUrl() = default;
    /// "/user/anna/", with or without the slashes at its ends. kInvalidArgument.
    static Result<BaseUrl> parse(std::string_view text);

    /// Starts and ends with a slash.
    const std::string& text() const { return text_; }

    enum class Place { kInside, kBare, kOutside };
    /// Takes the base away from the target's segments if the target is inside. kBare: the base
    /// without its last slash, which is to be redirected.
    Place enter(Target& target) const;
    /// Puts the base in front of an absolute path that does not have it yet.
    std::string qualify(std::string path) const;

 private:
    std::string text_ = "/";
    std::vector<std::string> segments_;
};

}  // namespace cellkeep::http
