// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/control/debug_sandbox.hpp"

#include "kernel-manager/e2b/control/sandbox_order.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"

#include <utility>

namespace cellkeep::e2b {

bool DebugSandbox::is_named_by(const http::Request& request) {
    const std::string* id = request.headers.find("E2b-Sandbox-Id");
    const auto& segments = request.target.segments;
    return id != nullptr && *id == kName && segments.size() > 1 && segments[0] == kSandboxSegment &&
           segments[1] == kName;
}

http::Principal DebugSandbox::user() {
    return {std::string(http::kAdminName), http::Role::kAgent};
}

boost::asio::awaitable<Result<DebugSandbox::Session>> DebugSandbox::session() {
    if (Session there = service_.find(session_id_)) {
        co_return there;
    }
    if (making_ != nullptr) {
        auto same = making_;
        Result<Session> made = co_await Completion<Result<Session>>::wait(std::move(same));
        co_return made;
    }
    const auto making = std::make_shared<Completion<Result<Session>>>(io_);
    making_ = making;
    const Offer offer{service_.languages(), service_.ceilings(), {}, false};
    const nlohmann::json body = {{"templateID", "code-interpreter-v1"}};
    auto order = parse_sandbox_order(body, offer);
    Result<Session> made = Error(ErrorCode::kUnavailable, "debug sandbox");
    if (order.has_error()) {
        made = order.error();
    } else {
        session::SessionOptions options = std::move(order.value().options);
        options.owner = user().name;
        made = co_await service_.create(std::move(options));
    }
    if (made.has_value()) {
        session_id_ = made.value()->id();
        book_.keep(session_id_, std::move(order.value().record));
    }
    making_.reset();
    making->set(made);
    co_return made;
}

}  // namespace cellkeep::e2b
