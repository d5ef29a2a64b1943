// SPDX-License-Identifier: Apache-2.0
//
// Which sandboxes a client wants listed, and a page of them. Pure.
#pragma once

#include "kernel-manager/e2b/control/sandbox_answer.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "protocol/support/result.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::e2b {

struct PageQuery {
    std::map<std::string, std::string> metadata;  // all of it must be there
    bool running = true;
    bool paused = true;
    std::string template_id;  // empty: any
    std::size_t limit = 0;
    bool oldest_first = false;
    std::string after;  // the last sandbox of the page before; empty: there is none
};

/// kInvalidArgument.
Result<PageQuery> parse_page_query(const http::Target& target);

struct ListedSandbox {
    session::SessionInfo info;
    SandboxRecord record;
    State state = State::kRunning;
};
bool matches(const PageQuery& query, const ListedSandbox& sandbox);

struct Page {
    std::vector<ListedSandbox> sandboxes;
    std::string next;  // the token for the next page; empty: this is the last
};
/// sandboxes: oldest first. After one that has gone a page begins where it would stand.
Page take_page(const PageQuery& query, std::vector<ListedSandbox> sandboxes);

}  // namespace cellkeep::e2b
