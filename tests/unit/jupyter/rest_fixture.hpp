// SPDX-License-Identifier: Apache-2.0
//
// The Jupyter Server REST API over a FakeSessionService, asked without sockets.
#pragma once

#include "kernel-manager/http/application.hpp"
#include "kernel-manager/jupyter/rest/rest_api.hpp"
#include "protocol/limits.hpp"
#include "tests/unit/service/fake_session_service.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cellkeep::jupyter::test {

using session::test::FakeSession;
using session::test::FakeSessionService;

inline constexpr const char* kSomeUuid = "01234567-89ab-4def-8123-456789abcdef";
inline constexpr const char* kOtherUuid = "76543210-89ab-4def-8123-456789abcdef";
/// Of the observer eve.
inline const std::string kEveToken(limits::kTokenBytesMin, 'e');

class RestFixture {
 public:
    explicit RestFixture(RestConfig config = {});

    struct Answer {
        int status = 0;  // 0: not answered yet
        http::Headers headers;
        std::string text;
        nlohmann::json json;  // null if the text is not JSON
    };
    /// Sends the token, unless headers say otherwise, and no Content-Type. The principal is that of
    /// the token in an Authorization header, else `principal`.
    Answer ask(
        const std::string& method,
        const std::string& target,
        const std::string& body = {},
        const std::vector<std::pair<std::string, std::string>>& headers = {});
    /// The same, but returns at the first wait; run() continues.
    std::shared_ptr<Answer> start(
        const std::string& method, const std::string& target, const std::string& body = {});
    void run();

    /// A running kernel with this id.
    std::shared_ptr<FakeSession> add_kernel(
        const std::string& kernel_id = kSomeUuid, const std::string& owner = "admin");

    RestApi& api() { return api_; }

    boost::asio::io_context io;
    FakeSessionService backend;
    http::Principal principal{"admin", http::Role::kAdmin};
    std::vector<std::string> log;

 private:
    std::shared_ptr<Answer> spawn(
        const std::string& method,
        const std::string& target,
        const std::string& body,
        const std::vector<std::pair<std::string, std::string>>& headers);

    http::Application application_;
    RestApi api_;
};

}  // namespace cellkeep::jupyter::test
