// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/e2b/wire/sandbox_door.hpp"

#include "kernel-manager/e2b/wire/error_style.hpp"
#include "kernel-manager/e2b/wire/sandbox_place.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <chrono>
#include <utility>

namespace cellkeep::e2b {

namespace {

/// An address within a sandbox has these segments before its own path.
constexpr std::size_t kPlaceSegments = 3;

bool is_files_address(const http::Request& request) {
    const auto& segments = request.target.segments;
    return segments.size() == kPlaceSegments + 1 && segments.back() == "files";
}

bool is_of_envd(const http::Request& request) {
    return request.target.segments[2] == std::to_string(kEnvdPort);
}

}  // namespace

std::optional<SandboxTokens::SignedUse> signed_use_of(const http::Request& request) {
    const auto signature = request.target.find_query("signature");
    if (!signature) {
        return std::nullopt;
    }
    SandboxTokens::SignedUse use;
    use.path = request.target.find_query("path").value_or("");
    use.operation = request.method == "POST" ? "write" : "read";
    use.user = request.target.find_query("username").value_or("");
    use.signature = *signature;
    use.expiration = request.target.find_query("signature_expiration");
    return use;
}

bool SandboxDoor::has_token(const http::Request& request, const std::string& session_id) const {
    using Use = SandboxTokens::Use;
    const bool is_envd = is_of_envd(request);
    if (const std::string* token = request.headers.find("X-Access-Token")) {
        return tokens_.fits(Use::kEnvd, session_id, *token);
    }
    const std::string* traffic = request.headers.find("E2B-Traffic-Access-Token");
    if (!is_envd && traffic != nullptr) {
        return tokens_.fits(Use::kTraffic, session_id, *traffic);
    }
    if (is_envd && is_files_address(request)) {
        const auto use = signed_use_of(request);
        // with_session() answers an expired signature with an error of its own.
        return use && tokens_.check(session_id, *use, std::chrono::system_clock::now()) !=
                          SandboxTokens::Verdict::kWrong;
    }
    return false;
}

std::optional<http::Response> SandboxDoor::refuse_expired(
    const http::Request& request, const std::string& session_id) const {
    const bool by_token = request.headers.find("X-Access-Token") != nullptr;
    if (by_token || !is_of_envd(request) || !is_files_address(request)) {
        return std::nullopt;
    }
    const auto use = signed_use_of(request);
    const bool expired = use && tokens_.check(session_id, *use, std::chrono::system_clock::now()) ==
                                    SandboxTokens::Verdict::kExpired;
    if (!expired) {
        return std::nullopt;
    }
    // The clients' own tests look for these words.
    return http::to_response(http::make_problem(401, "signature is already expired"));
}

std::optional<http::Application::Identified> SandboxDoor::identify(
    const http::Request& request) const {
    if (debug_ != nullptr && DebugSandbox::is_named_by(request)) {
        // Without a token any page could ask: those of other origins are refused.
        constexpr bool kAsABrowserDoes = false;
        return http::Application::Identified(DebugSandbox::user(), kAsABrowserDoes);
    }
    const auto& segments = request.target.segments;
    const auto id = segments.size() < kPlaceSegments ? std::nullopt : session_id_of(segments[1]);
    if (!id) {
        return std::nullopt;
    }
    const auto session = book_.find(*id);
    // A sandbox's token allows what its owner may do in this sandbox, and nothing elsewhere.
    const http::Principal owner{
        session == nullptr ? std::string("-") : session->info().owner, http::Role::kAgent};
    if (has_token(request, *id)) {
        return owner;
    }
    const auto port = preview::parse_port(segments[2]);
    if (session == nullptr || !port || *port == kEnvdPort || *port == kInterpreterPort) {
        return std::nullopt;
    }
    return previews_.identify(request, *id, *port, owner.name);
}

boost::asio::awaitable<Result<SandboxDoor::Session>> SandboxDoor::find_session(
    const http::Request& request) const {
    if (debug_ != nullptr && request.capture("id") == DebugSandbox::kName) {
        Result<Session> made = co_await debug_->session();
        co_return made;
    }
    const auto id = session_id_of(request.capture("id"));
    if (!id) {
        co_return Session();
    }
    co_return book_.find(*id);
}

http::Handler SandboxDoor::with_session(SandboxHandler handler) const {
    return [this, handler = std::move(handler)](
               http::Request& request) -> boost::asio::awaitable<http::Response> {
        auto found = co_await find_session(request);
        if (found.has_error()) {
            co_return http::to_response(http::problem_from(found.error()));
        }
        Session session = std::move(found).value();
        if (session == nullptr) {
            co_return sandbox_not_found(request);
        }
        const std::string& id = session->id();
        // Before it is resumed: what is refused must not wake it.
        if (auto refused = refuse_expired(request, id)) {
            co_return std::move(*refused);
        }
        if (SandboxBook::is_paused(*session)) {
            if (!book_.record(id).resume_on_use) {
                co_return sandbox_not_found(request);
            }
            SandboxBook::resume(*session);
        }
        session->touch();
        http::Response answer = co_await handler(request, std::move(session));
        co_return answer;
    };
}

}  // namespace cellkeep::e2b
