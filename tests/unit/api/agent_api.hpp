// SPDX-License-Identifier: Apache-2.0
//
// The session API over a FakeSessionService, asked without sockets.
#pragma once

#include "kernel-manager/api/routes/routes.hpp"
#include "kernel-manager/governance/approvals.hpp"
#include "kernel-manager/http/application.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/service/fake_session_service.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api::test {

using session::test::FakeSession;
using session::test::FakeSessionService;

/// The executions of the first session.
inline constexpr const char* kExecutions = "/v1/sessions/ses_1/executions";

/// Tokens of the agents alice and bob and of the observer eve.
inline const std::string kAliceToken(limits::kTokenBytesMin, 'a');
inline const std::string kBobToken(limits::kTokenBytesMin, 'b');
inline const std::string kEveToken(limits::kTokenBytesMin, 'e');

class Api {
 public:
    explicit Api(
        store::Store* store = nullptr,
        const std::string& trouble = {},
        std::shared_ptr<session::PackageInstaller> packages = nullptr);

    struct Answer {
        int status = 0;
        http::Headers headers;
        std::string text;
        bool whole = true;    // a stream came to its end
        nlohmann::json json;  // null if the text is not JSON
    };
    /// Sends the token and application/json, unless headers say otherwise. The principal is that of
    /// the token in an Authorization header, else `principal`.
    Answer ask(
        const std::string& method,
        const std::string& target,
        const std::string& body = {},
        const std::vector<std::pair<std::string, std::string>>& headers = {});

    FakeSessionService backend;
    /// Runs once, while a request waits for something.
    std::function<void()> meanwhile;
    /// The client of the next request goes as soon as it waits for something.
    bool client_goes = false;
    /// The same of its connection, which the server closes.
    bool connection_closes = false;
    /// The head of the next answer cannot be sent: a stream is not run.
    bool head_fails = false;
    http::Principal principal{"admin", http::Role::kAdmin};
    boost::asio::io_context approvals_io;
    std::shared_ptr<governance::Approvals> approvals =
        std::make_shared<governance::Approvals>(approvals_io);
    History history;

 private:
    http::Application application_;
    preview::Previews previews_;
    Routes routes_;
};

}  // namespace cellkeep::api::test
