// SPDX-License-Identifier: Apache-2.0
//
// One page of a listing of sessions: which of them, where the next page begins. A cursor names a
// place in the order of creation, so it stays good when sessions end. Pure.
#pragma once

#include "kernel-manager/http/message/problem.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "kernel-manager/session/session_info.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::api {

/// Sessions in one page of a listing.
inline constexpr std::size_t kPageSessionsMax = 1000;
inline constexpr std::size_t kPageSessionsDefault = 100;

/// What ?limit=, ?after=, ?state= and ?metadata.KEY= ask for.
struct PageQuery {
    /// Microseconds since 1970 and the id of a session: of the last one on the page before.
    struct Place {
        std::int64_t created_us = 0;
        std::string id;
    };
    std::size_t limit = kPageSessionsDefault;
    std::optional<Place> after;
    std::optional<session::KernelState> state;
    std::vector<std::pair<std::string, std::string>> metadata;
};

/// The problem is a 400 that names what is wrong.
std::optional<http::Problem> parse_page_query(const http::Target& target, PageQuery& query);

struct SessionPage {
    std::vector<session::SessionInfo> sessions;  // oldest first
    std::string next;                            // a cursor; empty: there is no more
};
SessionPage take_page(std::vector<session::SessionInfo> all, const PageQuery& query);

/// The value of a Link header (RFC 8288) for the page after this one.
std::string next_link(const http::Target& target, const std::string& cursor);

}  // namespace cellkeep::api
