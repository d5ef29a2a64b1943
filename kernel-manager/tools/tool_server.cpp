// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/tool_server.hpp"

#include "kernel-manager/tools/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/support/await.hpp"
#include "protocol/support/run_elsewhere.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::tools {

namespace asio = boost::asio;

namespace {

using nlohmann::json;
using std::chrono::steady_clock;

bool is_kind(const RpcAnswer& answer, ErrorCode code) {
    return answer->has_error() && answer->error().code() == code;
}

bool is_header_mismatch(const RpcAnswer& answer) {
    constexpr int kHeaderMismatch = -32020;
    const auto& message = answer->value().message;
    return message.contains("error") && message["error"].is_object() &&
           message["error"].value("code", json()) == kHeaderMismatch;
}

}  // namespace

std::shared_ptr<ToolServer> ToolServer::create(
    asio::io_context& io, std::shared_ptr<WorkThread> work_thread, ServerEntry entry, Hooks hooks) {
    return std::shared_ptr<ToolServer>(
        new ToolServer(io, std::move(work_thread), std::move(entry), std::move(hooks)));
}

ToolServer::ToolServer(
    asio::io_context& io, std::shared_ptr<WorkThread> work_thread, ServerEntry entry, Hooks hooks)
    : io_(io),
      work_thread_(std::move(work_thread)),
      entry_(std::move(entry)),
      hooks_(std::move(hooks)),
      mask_(std::make_shared<const egress::SecretMask>(entry_.secrets)),
      wake_(io) {}

void ToolServer::start() {
    asio::co_spawn(io_, run(shared_from_this()), asio::detached);
}

void ToolServer::stop() {
    stopped_ = true;
    is_ready_ = false;
    if (const auto connection = std::exchange(connection_, nullptr)) {
        connection->close();
    }
    wake_.cancel();
}

const ServerTool* ToolServer::find(std::string_view word) const {
    const auto found = std::find_if(
        tools_.begin(), tools_.end(), [&](const ServerTool& tool) { return tool.word == word; });
    return found == tools_.end() ? nullptr : &*found;
}

/// Owns the server as long as it is not stopped.
asio::awaitable<void> ToolServer::run(std::shared_ptr<ToolServer> self) {
    std::chrono::milliseconds wait = kRestartPause;
    while (!self->stopped_) {
        const auto begun = steady_clock::now();
        const Status ready = co_await self->begin();
        if (self->stopped_) {
            co_return;
        }
        if (ready.has_value()) {
            self->is_ready_ = true;
            co_await self->serve();
        } else {
            self->hooks_.log(*self, "not_started", ready.error().message());
        }
        self->is_ready_ = false;
        if (const auto connection = std::exchange(self->connection_, nullptr)) {
            connection->close();
        }
        if (steady_clock::now() - begun >= kRestartPauseMax) {
            wait = kRestartPause;  // it was well for a while
        }
        co_await self->pause(wait);
        wait = std::min(wait * 2, kRestartPauseMax);
    }
}

asio::awaitable<void> ToolServer::pause(std::chrono::milliseconds time) {
    if (!stopped_) {
        wake_.expires_after(time);
        (void)co_await wake_.async_wait(kAwait);  // Ignored: it ends as it ends.
    }
}

ConnectionParts ToolServer::make_parts() {
    const std::weak_ptr<ToolServer> weak = weak_from_this();
    return {
        .io = io_,
        .work_thread = work_thread_,
        .mask = mask_,
        .on_notice =
            [weak](const json& message) {
                if (const auto self = weak.lock()) {
                    self->on_notice(message);
                }
            },
        .on_line =
            [weak](const std::string& line) {
                if (const auto self = weak.lock()) {
                    self->hooks_.log(*self, "stderr", plain_text(line, kErrorLineBytesMax));
                }
            },
        .on_lost =
            [weak](const Error& why) {
                if (const auto self = weak.lock()) {
                    self->on_lost(why);
                }
            }};
}

asio::awaitable<Status> ToolServer::begin() {
    auto connected = hooks_.connect(entry_, make_parts());
    if (connected.has_error()) {
        co_return connected.error();
    }
    connection_ = std::move(connected).value();
    BOOST_OUTCOME_CO_TRY(co_await agree());
    co_return co_await list();
}

/// The newest revision is asked for first. Whatever is no answer of a server that knows it means
/// the handshake of before.
asio::awaitable<Status> ToolServer::agree() {
    era_ = Era::kSession;
    tells_changes_ = false;
    if (std::exchange(ended_by_discovery_, false)) {
        co_return co_await initialise();
    }
    const RpcAnswer answer = co_await discover(kDiscoverPatience);
    if (!connection_) {
        ended_by_discovery_ = true;  // some end at what is no handshake: the next start has that
        co_return Error(ErrorCode::kUnavailable, "it ended when it was asked what it speaks");
    }
    if (answer->has_value()) {
        const Discovery discovery = read_discovery(answer->value().message);
        if (discovery.speaks != Speaks::kHandshake) {
            co_return adopt(discovery);
        }
    }
    const Status agreed = co_await initialise();
    if (!is_kind(answer, ErrorCode::kTimeout) || !connection_ || agreed.has_value() ||
        agreed.error().code() != ErrorCode::kProtocol) {
        co_return agreed;
    }
    // It was slow to start, and refuses the handshake now that it is there.
    const RpcAnswer again = co_await discover(kStartPatience);
    if (again->has_error()) {
        co_return agreed;
    }
    co_return adopt(read_discovery(again->value().message));
}

Status ToolServer::adopt(const Discovery& discovery) {
    if (discovery.speaks != Speaks::kStateless) {
        return Error(ErrorCode::kProtocol, "it speaks no revision that is known here");
    }
    era_ = Era::kStateless;
    tells_changes_ = discovery.tells_changes;
    return ok();
}

asio::awaitable<RpcAnswer> ToolServer::discover(std::chrono::milliseconds patience) {
    const auto connection = connection_;
    RpcRequest request =
        make_request(Era::kStateless, take_id(), "server/discover", json::object(), patience);
    co_return co_await connection->request(std::move(request));
}

/// The result of a request. The error of a server has no text of its own: it may be anything.
asio::awaitable<Result<json>> ToolServer::ask(std::string method, json params) {
    const auto connection = connection_;
    if (!connection) {
        co_return Error(ErrorCode::kUnavailable, "the connection is lost");
    }
    RpcRequest request = make_request(era_, take_id(), method, std::move(params), kStartPatience);
    const RpcAnswer answer = co_await connection->request(std::move(request));
    if (answer->has_error()) {
        co_return answer->error();
    }
    const json& message = answer->value().message;
    const auto result = message.find("result");
    if (result == message.end() || !result->is_object()) {
        co_return Error(ErrorCode::kProtocol, "it refused the request " + method);
    }
    co_return *result;
}

asio::awaitable<Status> ToolServer::initialise() {
    json params = {
        {"protocolVersion", kSessionRevisions.front()},
        {"capabilities", json::object()},
        {"clientInfo", {{"name", "cellkeep"}, {"version", "1"}}}};
    BOOST_OUTCOME_CO_TRY(const json result, co_await ask("initialize", std::move(params)));
    const auto agreed = result.find("protocolVersion");
    if (agreed == result.end() || !agreed->is_string() ||
        std::find(kSessionRevisions.begin(), kSessionRevisions.end(), agreed->get<std::string>()) ==
            kSessionRevisions.end()) {
        co_return Error(ErrorCode::kProtocol, "it speaks no revision that is known here");
    }
    const auto connection = connection_;
    if (!connection) {
        co_return Error(ErrorCode::kUnavailable, "the connection is lost");
    }
    std::string revision = agreed->get<std::string>();
    std::string notice = notice_text("notifications/initialized", json::object());
    co_await connection->begin_session(std::move(revision), std::move(notice));
    co_return ok();
}

asio::awaitable<Status> ToolServer::list() {
    lists_anew_ = false;
    std::vector<ServerTool> tools;
    std::vector<std::string> left_out;
    std::string cursor;
    for (std::size_t page = 0; page < kListPagesMax; ++page) {
        json params = json::object();
        if (!cursor.empty()) {
            params["cursor"] = cursor;
        }
        BOOST_OUTCOME_CO_TRY(const json result, co_await ask("tools/list", std::move(params)));
        BOOST_OUTCOME_CO_TRY(ToolPage read, read_tool_page(entry_.word, result));
        if (era_ == Era::kStateless && std::holds_alternative<UrlPlace>(entry_.place)) {
            read_headers(read);
        }
        const auto more = add_tools(tools, std::move(read.tools));
        left_out.insert(left_out.end(), read.left_out.begin(), read.left_out.end());
        left_out.insert(left_out.end(), more.begin(), more.end());
        cursor = std::move(read.cursor);
        if (cursor.empty() || tools.size() >= kServerToolsMax) {
            break;
        }
    }
    if (!cursor.empty()) {
        left_out.emplace_back("the rest of an endless list");
    }
    if (!left_out.empty()) {
        hooks_.log(
            *this,
            "tools_left_out",
            std::to_string(left_out.size()) + ", the first: " + left_out.front());
    }
    tools_ = std::move(tools);
    hooks_.on_tools(*this);
    co_return ok();
}

/// Since 2026-07-28 who wants to hear of changes says so. The answer comes at the end.
asio::awaitable<void> ToolServer::listen(
    std::shared_ptr<ToolServer> self, std::shared_ptr<ServerConnection> connection) {
    RpcRequest request = make_request(
        Era::kStateless,
        self->take_id(),
        "subscriptions/listen",
        {{"notifications", {{"toolsListChanged", true}}}},
        kListenPatience);
    const std::int64_t id = request.id;
    const RpcAnswer ended = co_await connection->request(std::move(request));
    if (is_kind(ended, ErrorCode::kTimeout)) {
        self->cancel(id);
    }
    if (self->listening_on_ == connection.get()) {
        self->listening_on_ = nullptr;
    }
}

/// Until the connection is lost.
asio::awaitable<void> ToolServer::serve() {
    while (!stopped_ && connection_) {
        if (tells_changes_ && listening_on_ != connection_.get()) {
            listening_on_ = connection_.get();
            asio::co_spawn(io_, listen(shared_from_this(), connection_), asio::detached);
        }
        if (!lists_anew_) {
            co_await pause(kListAge);
        }
        co_await pause(kListPause);  // a server that says it all the time is asked now and then
        if (stopped_ || !connection_) {
            co_return;
        }
        const Status listed = co_await list();
        if (listed.has_error()) {
            hooks_.log(*this, "not_listed", listed.error().message());
            co_return;
        }
    }
}

void ToolServer::on_notice(const json& message) {
    const auto method = message.find("method");
    if (method == message.end() || !method->is_string() || !connection_) {
        return;
    }
    const auto id = message.find("id");
    if (id != message.end() && (id->is_string() || id->is_number_integer())) {
        if (era_ == Era::kSession) {  // since then a server asks nothing
            connection_->notify(reply_text(message));
        }
    } else if (*method == "notifications/tools/list_changed" && !lists_anew_) {
        lists_anew_ = true;
        wake_.cancel();
    }
}

void ToolServer::on_lost(const Error& why) {
    hooks_.log(*this, "lost", why.message());
    connection_ = nullptr;
    is_ready_ = false;
    wake_.cancel();
}

asio::awaitable<RpcAnswer> ToolServer::call(
    std::string tool, std::string arguments, std::int64_t id) {
    const auto self = shared_from_this();
    const auto connection = connection_;
    if (!connection || !is_ready_) {
        co_return make_answer(Error(ErrorCode::kUnavailable, "it does not run at present"));
    }
    if (calls_ >= kServerCallsMax) {
        co_return make_answer(Error(
            ErrorCode::kUnavailable,
            std::to_string(kServerCallsMax) + " of its calls are not answered yet"));
    }
    ++calls_;
    RpcAnswer answer = co_await send_call(connection, std::move(tool), std::move(arguments), id);
    --calls_;
    if (is_kind(answer, ErrorCode::kTimeout)) {
        cancel(id);
    }
    if (answer->has_value() && is_header_mismatch(answer) && !lists_anew_) {
        lists_anew_ = true;  // its schema may have changed
        wake_.cancel();
    }
    co_return answer;
}

asio::awaitable<RpcAnswer> ToolServer::send_call(
    std::shared_ptr<ServerConnection> connection,
    std::string tool,
    std::string arguments,
    std::int64_t id) {
    auto repeated = co_await repeat(tool, arguments);
    if (repeated.has_error()) {
        co_return make_answer(repeated.error());
    }
    RpcRequest request =
        make_call(era_, id, tool, arguments, std::move(repeated).value(), entry_.patience);
    co_return co_await connection->request(std::move(request));
}

/// The headers that repeat some of a call's arguments; by the work thread if these are long.
asio::awaitable<Result<NamedTexts>> ToolServer::repeat(std::string tool, std::string arguments) {
    const auto found = std::find_if(
        tools_.begin(), tools_.end(), [&](const ServerTool& each) { return each.name == tool; });
    const auto headers = found == tools_.end() ? std::vector<ParameterHeader>() : found->headers;
    if (headers.empty() || arguments.size() <= kReadAtOnceBytesMax) {
        co_return repeat_arguments(headers, arguments);
    }
    std::function<std::optional<Result<NamedTexts>>()> slice = [headers, arguments] {
        return std::optional(repeat_arguments(headers, arguments));
    };
    co_return co_await run_elsewhere<Result<NamedTexts>>(io_, *work_thread_, std::move(slice));
}

void ToolServer::cancel(std::int64_t id) {
    if (connection_) {
        connection_->cancel(
            id,
            notice_text(
                "notifications/cancelled", {{"requestId", id}, {"reason", "nobody waits for it"}}));
    }
}

}  // namespace cellkeep::tools
