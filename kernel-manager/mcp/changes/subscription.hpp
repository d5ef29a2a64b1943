// SPDX-License-Identifier: Apache-2.0
//
// The resources whose changes one client wants to hear of. io_context thread only.
#pragma once

#include "kernel-manager/http/access/principal.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace cellkeep::mcp {

class ChangeWatch;

/// Made by ChangeWatch::open(); heard of as long as somebody holds it.
class Subscription {
 public:
    /// Tells the client; false: there is no room for it now, and it is told later.
    using Tell = std::function<bool(const std::string& uri)>;

    Subscription(std::weak_ptr<ChangeWatch> watch, http::Principal principal, Tell tell)
        : watch_(std::move(watch)), principal_(std::move(principal)), tell_(std::move(tell)) {}
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    ~Subscription();

    const http::Principal& principal() const { return principal_; }
    std::size_t size() const { return seen_.size(); }
    /// By URI: what the resource was like when it was last looked at.
    const std::map<std::string, std::string>& seen() const { return seen_; }
    bool has(const std::string& uri) const { return seen_.contains(uri); }
    void remove(const std::string& uri);

 private:
    friend class ChangeWatch;

    std::weak_ptr<ChangeWatch> watch_;
    http::Principal principal_;
    Tell tell_;
    std::map<std::string, std::string> seen_;
};

}  // namespace cellkeep::mcp
