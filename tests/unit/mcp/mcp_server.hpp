// SPDX-License-Identifier: Apache-2.0
//
// The MCP front end over a FakeSessionService, asked without sockets.
#pragma once

#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/http/application.hpp"
#include "kernel-manager/mcp/front.hpp"
#include "kernel-manager/mcp/transport/http_endpoint.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/service/fake_session_service.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::mcp::test {

using session::test::FakeSession;
using session::test::FakeSessionService;

/// Tokens of the agents alice and bob and of the observer eve; "t" is the administrator's.
inline const std::string kAliceToken(limits::kTokenBytesMin, 'a');
inline const std::string kBobToken(limits::kTokenBytesMin, 'b');
inline const std::string kEveToken(limits::kTokenBytesMin, 'e');

using Fields = std::vector<std::pair<std::string, std::string>>;

class McpServer {
 public:
    explicit McpServer(
        const std::vector<std::string>& origins = {}, WithFixtures fixtures = WithFixtures::kNo);

    struct Answer {
        int status = 0;
        http::Headers headers;
        std::string text;
        bool whole = true;                   // a stream came to its end
        nlohmann::json json;                 // null if the text is not JSON
        std::vector<nlohmann::json> events;  // the messages of a stream

        /// The response: the whole, or the last event.
        const nlohmann::json& message() const { return events.empty() ? json : events.back(); }
    };
    /// Sends what a client of any revision sends, and the administrator's token, unless fields say
    /// otherwise; one with an empty value is not sent.
    Answer ask(const std::string& method, const std::string& body, const Fields& fields = {});

    /// A request of 2026-07-28 with its headers.
    Answer call(
        const std::string& method,
        nlohmann::json params = nlohmann::json::object(),
        const Fields& fields = {});
    /// The result of tools/call.
    nlohmann::json tool(
        const std::string& name,
        nlohmann::json arguments = nlohmann::json::object(),
        const Fields& fields = {});
    /// A request of a client session.
    Answer in_session(
        const std::string& id,
        const std::string& method,
        nlohmann::json params = nlohmann::json::object(),
        const Fields& fields = {});
    /// initialize: the id of the client session.
    std::string begin(
        const std::string& revision,
        const Fields& fields = {},
        nlohmann::json capabilities = nlohmann::json::object());
    /// GET /mcp of a client session: what came until client_goes_when.
    Answer stream(const std::string& id, const Fields& fields = {});

    HttpEndpoint& endpoint() { return endpoint_; }

    FakeSessionService backend;
    /// What calls of tools wait for.
    std::shared_ptr<governance::Approvals> approvals =
        std::make_shared<governance::Approvals>(backend.io);
    /// Runs once, while a request waits for something.
    std::function<void()> meanwhile;
    /// The client of the next request goes as soon as it waits for something.
    bool client_goes = false;
    /// The client of the next stream goes as soon as this is true of what it got.
    std::function<bool(const std::string& text)> client_goes_when;
    /// The server stops while the next request waits for something.
    bool stops = false;
    std::string target = "/mcp";

 private:
    http::Application application_;
    Front front_;
    HttpEndpoint endpoint_;
};

/// A request of 2026-07-28. Its _meta may say what the client can be asked.
nlohmann::json stateless_request(const std::string& method, nlohmann::json params);
Fields bearer(const std::string& token);

}  // namespace cellkeep::mcp::test
