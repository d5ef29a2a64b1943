// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/run/run_target.hpp"

#include "kernel-manager/api/answers/execution_model.hpp"
#include "kernel-manager/api/answers/model.hpp"
#include "kernel-manager/cli/json_field.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/http/client.hpp"
#include "kernel-manager/http/message/target.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/session/session_options.hpp"
#include "protocol/json.hpp"
#include "protocol/message.hpp"

#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

/// How much longer than an execution's own limit its answer may take: grace, restart, transfer.
constexpr std::chrono::seconds kAnswerGrace{60};
constexpr std::chrono::seconds kShortCall{60};

class LocalTarget : public RunTarget {
 public:
    LocalTarget(
        asio::io_context& io,
        session::ServiceConfig config,
        std::string language,
        std::string environment)
        : service_(io, std::move(config)),
          language_(std::move(language)),
          environment_(std::move(environment)) {}
    LocalTarget(const LocalTarget&) = delete;
    LocalTarget& operator=(const LocalTarget&) = delete;
    ~LocalTarget() override { service_.shutdown(); }

    asio::awaitable<Result<std::string>> open(std::chrono::milliseconds timeout) override {
        session::SessionOptions options;
        options.language = language_;
        options.environment = environment_;
        options.limits.wall = timeout;
        options.limits.cpu = timeout;
        options.owner = "run";
        auto created = co_await service_.create(std::move(options));
        if (created.has_error()) {
            co_return created.error();
        }
        session_ = std::move(created).value();
        co_return session_->id();
    }

    asio::awaitable<Result<nlohmann::json>> execute(std::string code) override {
        session::ExecutionRequest request;
        request.code = std::move(code);
        const auto result = co_await session_->execute(std::move(request));
        if (result.has_error()) {
            co_return result.error();
        }
        co_return protocol::parse_json(
            api::result_text(result.value(), api::Outputs::kInclude).join(), "execution");
    }

    asio::awaitable<void> interrupt() override {
        // Ignored: a kernel that is gone needs no interrupt.
        (void)session_->interrupt();
        co_return;
    }

    asio::awaitable<void> close() override {
        // Ignored: already gone is what we want.
        (void)service_.remove(session_->id());
        co_return;
    }

 private:
    session::Service service_;
    std::string language_;
    std::string environment_;
    std::shared_ptr<session::Session> session_;
};

/// The detail of a problem answer, for people.
Error refusal(const http::ClientResponse& response) {
    const auto problem = protocol::parse_json(response.body, "the server's answer");
    std::string detail = "the server answered " + std::to_string(response.status);
    if (problem.has_value()) {
        detail = text_field(problem.value(), "detail", detail);
    }
    return {ErrorCode::kUnavailable, detail};
}

class ServerTarget : public RunTarget {
 public:
    ServerTarget(http::ServerAddress server, std::string language, std::string environment)
        : server_(std::move(server)),
          language_(std::move(language)),
          environment_(std::move(environment)) {}

    asio::awaitable<Result<std::string>> open(std::chrono::milliseconds timeout) override {
        timeout_ = timeout;
        nlohmann::json body;
        body["language"] = language_;
        body["environment"] = environment_;
        body["limits"]["wall_ms"] = timeout.count();
        body["limits"]["cpu_ms"] = timeout.count();
        const auto session = co_await call("POST", "/v1/sessions", std::move(body), kShortCall);
        if (session.has_error()) {
            co_return session.error();
        }
        session_id_ = text_field(session.value(), "id");
        if (session_id_.empty()) {
            co_return Error(ErrorCode::kUnavailable, "the server's answer names no session");
        }
        co_return session_id_;
    }

    asio::awaitable<Result<nlohmann::json>> execute(std::string code) override {
        nlohmann::json body;
        body["code"] = std::move(code);
        body["outputs"] = true;
        co_return co_await call(
            "POST", path() + "/executions", std::move(body), timeout_ + kAnswerGrace);
    }

    asio::awaitable<void> interrupt() override {
        // Ignored: the session may just have ended.
        (void)co_await call("POST", path() + "/interrupt", nullptr, kShortCall);
    }

    asio::awaitable<void> close() override {
        // Ignored: the server culls what we cannot delete.
        (void)co_await call("DELETE", path(), nullptr, kShortCall);
    }

 private:
    std::string path() const { return "/v1/sessions/" + http::encode_segment(session_id_); }

    asio::awaitable<Result<nlohmann::json>> call(
        std::string method,
        std::string target,
        nlohmann::json body,
        std::chrono::milliseconds timeout) {
        http::ClientRequest request;
        request.method = std::move(method);
        request.target = std::move(target);
        if (!body.is_null()) {
            request.body = protocol::dump_json(body);
        }
        request.timeout = timeout;
        const auto response = co_await http::fetch(server_, std::move(request));
        if (response.has_error()) {
            co_return response.error();
        }
        if (response.value().status >= 300) {
            co_return refusal(response.value());
        }
        if (response.value().body.empty()) {
            co_return nlohmann::json(nullptr);
        }
        co_return protocol::parse_json(response.value().body, "the server's answer");
    }

    http::ServerAddress server_;
    std::string language_;
    std::string environment_;
    std::string session_id_;
    std::chrono::milliseconds timeout_{0};
};

}  // namespace

Result<std::unique_ptr<RunTarget>> make_local_target(asio::io_context& io, const LocalRun& run) {
    BOOST_OUTCOME_TRY(
        auto config, make_service_config(1, run.allow_degraded, kAutomaticImage, run.kernels));
    return std::unique_ptr<RunTarget>(
        std::make_unique<LocalTarget>(io, std::move(config), run.language, run.environment));
}

Result<std::unique_ptr<RunTarget>> make_server_target(
    const ServerRecord& server, const std::string& language, const std::string& environment) {
    BOOST_OUTCOME_TRY(auto address, address_of(server));
    return std::unique_ptr<RunTarget>(
        std::make_unique<ServerTarget>(std::move(address), language, environment));
}

}  // namespace cellkeep::cli
