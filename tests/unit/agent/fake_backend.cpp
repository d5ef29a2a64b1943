// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/fake_backend.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace cellkeep::agent::test {

namespace asio = boost::asio;

FakeSession::FakeSession(session::SessionInfo info, int workspace_fd)
    : info_(std::move(info)), workspace_fd_(workspace_fd) {}

asio::awaitable<Result<session::ExecutionResult>> FakeSession::execute(
    session::ExecutionRequest request) {
    requests.push_back(std::move(request));
    if (failure) {
        co_return *failure;
    }
    session::ExecutionResult result;
    result.id = "exe_1";
    result.session_id = info_.id;
    result.execution_count = 1;
    result.stdout_text = "out";
    result.exit_code = 0;
    result.outputs =
        nlohmann::json::parse(R"([{"output_type":"stream","name":"stdout","text":"out"}])");
    co_return result;
}

std::optional<session::ExecutionResult> FakeSession::find_execution(const std::string& id) const {
    if (id != "exe_1") {
        return std::nullopt;
    }
    session::ExecutionResult result;
    result.id = id;
    return result;
}

Status FakeSession::interrupt() {
    ++interrupts;
    if (failure) {
        return *failure;
    }
    return ok();
}

asio::awaitable<Status> FakeSession::restart() {
    ++restarts;
    if (failure) {
        co_return *failure;
    }
    co_return ok();
}

Result<sandbox::Workspace> FakeSession::workspace() {
    if (failure) {
        return *failure;
    }
    return sandbox::Workspace(workspace_fd_, ::getuid(), ::getgid());
}

FakeBackend::FakeBackend() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "cellkeep-agent-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    directory_fd_ = ::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(directory_fd_ >= 0);
}

FakeBackend::~FakeBackend() {
    (void)::close(directory_fd_);
    std::error_code ignored;  // Ignored: the next run makes its own directory.
    (void)std::filesystem::remove_all(directory_, ignored);
}

std::shared_ptr<FakeSession> FakeBackend::add(session::SessionOptions options) {
    session::SessionInfo info;
    info.id = "ses_" + std::to_string(next_id_++);
    info.kernel_id = "kernel-" + info.id;
    info.language = options.language;
    info.state = session::KernelState::kIdle;
    info.limits = options.limits;
    info.metadata = options.metadata;
    info.owner = options.owner;
    auto session = std::make_shared<FakeSession>(std::move(info), directory_fd_);
    session->failure = session_failure;
    sessions.push_back(session);
    return session;
}

asio::awaitable<Result<std::shared_ptr<session::Session>>> FakeBackend::create(
    session::SessionOptions options) {
    if (failure) {
        co_return *failure;
    }
    co_return std::shared_ptr<session::Session>(add(std::move(options)));
}

std::shared_ptr<session::Session> FakeBackend::find(const std::string& id) const {
    for (const auto& session : sessions) {
        if (session->id() == id || session->info().kernel_id == id) {
            return session;
        }
    }
    return nullptr;
}

std::vector<std::shared_ptr<session::Session>> FakeBackend::list() const {
    return {sessions.begin(), sessions.end()};
}

Status FakeBackend::remove(const std::string& id) {
    ++removed;
    const auto found = std::find_if(
        sessions.begin(), sessions.end(), [&id](const auto& each) { return each->id() == id; });
    if (found == sessions.end()) {
        return Error(ErrorCode::kNotFound, "no session " + id);
    }
    sessions.erase(found);
    return ok();
}

Api::Api() : application_(http::TokenAuth("t"), http::HostGuard()), routes_(backend, "9.9") {
    routes_.add_to(application_.router());
}

Api::Answer Api::ask(
    const std::string& method,
    const std::string& target,
    const std::string& body,
    const std::vector<std::pair<std::string, std::string>>& headers) {
    /// The whole body as one piece.
    class OnePiece : public http::BodyStream {
     public:
        explicit OnePiece(const std::string& bytes) : bytes_(bytes) {}
        asio::awaitable<Result<std::string_view>> read() override {
            co_return std::exchange(done_, true) ? std::string_view() : std::string_view(bytes_);
        }

     private:
        const std::string& bytes_;
        bool done_ = false;
    };
    http::Request request;
    request.method = method;
    request.headers.add("Authorization", "Bearer t");
    request.headers.add("Content-Type", "application/json");
    for (const auto& [name, value] : headers) {
        request.headers.set(name, value);
    }
    auto admission = application_.admit(request, target);
    request.principal = principal;
    http::Response response = std::move(admission.refusal);
    if (admission.route != nullptr) {
        OnePiece stream(body);
        request.stream = &stream;
        request.body = body;
        asio::io_context io;
        const auto run = [&]() -> asio::awaitable<void> {
            response = co_await http::Application::run(*admission.route, request);
        };
        asio::co_spawn(io, run, [](std::exception_ptr thrown) { REQUIRE_FALSE(thrown); });
        (void)io.run();
    }
    Answer answer;
    answer.status = response.status;
    answer.headers = response.headers;
    if (const auto* text = std::get_if<std::string>(&response.body)) {
        answer.text = *text;
    } else {
        const auto& file = std::get<http::FileBody>(response.body);
        answer.text.resize(file.length);
        REQUIRE(
            ::pread(
                file.fd.get(), answer.text.data(), file.length, static_cast<off_t>(file.offset)) ==
            static_cast<ssize_t>(file.length));
    }
    answer.json = nlohmann::json::parse(answer.text, nullptr, false);
    if (answer.json.is_discarded()) {
        answer.json = nullptr;
    }
    return answer;
}

}  // namespace cellkeep::agent::test
