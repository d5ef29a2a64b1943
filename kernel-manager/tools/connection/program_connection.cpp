// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/program_connection.hpp"

#include "kernel-manager/tools/connection/line_splitter.hpp"
#include "kernel-manager/tools/connection/program.hpp"
#include "kernel-manager/tools/limits.hpp"
#include "protocol/support/await.hpp"
#include "protocol/support/completion.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <deque>
#include <map>
#include <utility>

namespace cellkeep::tools {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kReadBytes = 64ULL << 10U;
constexpr std::chrono::minutes kErrorsCountedFor{1};

/// Lets a program that floods its stderr log no more than kErrorLinesMax lines in a minute.
class ErrorLog {
 public:
    /// Nothing: the line is left out.
    std::vector<std::string> admit(std::vector<std::string> lines) {
        const auto now = std::chrono::steady_clock::now();
        if (now - since_ >= kErrorsCountedFor) {
            since_ = now;
            admitted_ = 0;
        }
        if (lines.size() > kErrorLinesMax - admitted_) {
            lines.resize(kErrorLinesMax - admitted_);
        }
        admitted_ += lines.size();
        return lines;
    }

 private:
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    std::size_t admitted_ = 0;
};

}  // namespace

struct ProgramConnection::State : std::enable_shared_from_this<ProgramConnection::State> {
    using Waiting = std::shared_ptr<Completion<RpcAnswer>>;

    State(ConnectionParts given, Program started)
        : parts(std::move(given)),
          program(std::make_unique<Program>(std::move(started))),
          input(parts.io),
          output(parts.io),
          errors(parts.io),
          end(parts.io),
          end_timer(parts.io) {}

    Status begin() {
        boost::system::error_code failed;
        const auto attach = [&failed](asio::posix::stream_descriptor& stream, UniqueFd fd) {
            if (!failed) {
                (void)stream.assign(fd.release(), failed);
            }
        };
        attach(input, program->take_input());
        attach(output, program->take_output());
        attach(errors, program->take_errors());
        attach(end, program->take_end());
        if (failed) {
            return Error(ErrorCode::kSystem, "watch the tool server: " + failed.message());
        }
        const auto self = shared_from_this();
        asio::co_spawn(parts.io, read_output(self), asio::detached);
        asio::co_spawn(parts.io, read_errors(self), asio::detached);
        return ok();
    }

    /// Takes the state by value: a coroutine must own what it uses.
    static asio::awaitable<void> read_output(std::shared_ptr<State> self) {
        LineSplitter splitter(kServerMessageBytesMax);
        std::vector<char> piece(kReadBytes);
        while (!self->closed) {
            auto [failed, bytes] =
                co_await self->output.async_read_some(asio::buffer(piece), kAwait);
            if (self->closed) {
                co_return;
            }
            if (failed) {
                self->lose(Error(ErrorCode::kUnavailable, "the program has ended"));
                co_return;
            }
            std::vector<std::string> lines = splitter.feed({piece.data(), bytes});
            if (splitter.overflowed()) {
                self->lose(Error(
                    ErrorCode::kLimitExceeded,
                    "a message has more than " + std::to_string(kServerMessageBytesMax) +
                        " bytes"));
                co_return;
            }
            for (std::string& line : lines) {
                Result<RpcResponse> read = co_await read_rpc(self->parts, std::move(line));
                if (self->closed) {
                    co_return;
                }
                if (read.has_error()) {
                    self->lose(read.error());
                    co_return;
                }
                self->take(std::move(read).value());
            }
        }
    }

    static asio::awaitable<void> read_errors(std::shared_ptr<State> self) {
        LineSplitter splitter(kErrorLineBytesMax);
        ErrorLog admitted;
        std::array<char, kErrorLineBytesMax> piece{};
        while (true) {
            auto [failed, bytes] =
                co_await self->errors.async_read_some(asio::buffer(piece), kAwait);
            if (failed || self->closed) {
                co_return;
            }
            const std::string_view got(piece.data(), bytes);
            for (const std::string& line : admitted.admit(splitter.feed(got))) {
                self->parts.on_line(self->parts.mask->mask(line));
            }
        }
    }

    void take(RpcResponse response) {
        const auto id = response_id(response.message);
        if (!id) {
            if (response.message.contains("method")) {
                parts.on_notice(response.message);
            }
            return;
        }
        const auto found = waiting.find(*id);
        if (found != waiting.end()) {  // else it comes too late, or answers nothing
            const Waiting one = found->second;
            waiting.erase(found);
            one->set(make_answer(std::move(response)));
        }
    }

    void lose(const Error& why) {
        if (closed) {
            return;
        }
        const auto on_lost = parts.on_lost;
        shut(why);
        on_lost(why);
    }

    void shut(const Error& why) {
        closed = true;
        for (const auto& [id, one] : std::exchange(waiting, {})) {
            one->set(make_answer(why));
        }
        boost::system::error_code ignored;  // Ignored: what was waited for is given up either way.
        (void)input.close(ignored);
        (void)output.close(ignored);
        (void)errors.close(ignored);
        asio::co_spawn(parts.io, end_program(shared_from_this()), asio::detached);
    }

    /// Its input is at its end: that asks it to go. Then it is asked once more, and killed.
    static asio::awaitable<void> end_program(std::shared_ptr<State> self) {
        self->end_timer.expires_after(kEndPatience / 2);
        self->end_timer.async_wait([self](const boost::system::error_code& error) {
            if (!error && !self->ended) {
                self->end.cancel();
            }
        });
        auto [running] =
            co_await self->end.async_wait(asio::posix::stream_descriptor::wait_read, kAwait);
        self->ended = true;
        self->end_timer.cancel();
        if (running) {
            self->program->ask_to_end();
            self->end_timer.expires_after(kEndPatience / 2);
            (void)co_await self->end_timer.async_wait(kAwait);  // Ignored: either way it is time.
        }
        self->program.reset();
    }

    bool send(std::string text) {
        // A line end in a message would be the beginning of another one.
        const bool is_line = text.find_first_of("\r\n") == std::string::npos;
        if (closed || !is_line || unsent_bytes + text.size() > kUnsentBytesMax) {
            return false;
        }
        text += '\n';
        unsent_bytes += text.size();
        unsent.push_back(std::move(text));
        if (!writing) {
            writing = true;
            asio::co_spawn(parts.io, write(shared_from_this()), asio::detached);
        }
        return true;
    }

    static asio::awaitable<void> write(std::shared_ptr<State> self) {
        while (!self->closed && !self->unsent.empty()) {
            const std::string text = std::move(self->unsent.front());
            self->unsent.pop_front();
            auto [failed, bytes] =
                co_await asio::async_write(self->input, asio::buffer(text), kAwait);
            self->unsent_bytes -= text.size();
            if (failed) {
                break;  // its end is told by its output
            }
        }
        self->writing = false;
    }

    ConnectionParts parts;
    std::unique_ptr<Program> program;  // null: it has ended
    asio::posix::stream_descriptor input;
    asio::posix::stream_descriptor output;
    asio::posix::stream_descriptor errors;
    asio::posix::stream_descriptor end;
    asio::steady_timer end_timer;
    std::map<std::int64_t, Waiting> waiting;
    std::deque<std::string> unsent;
    std::size_t unsent_bytes = 0;
    bool writing = false;
    bool closed = false;
    bool ended = false;  // it was waited for long enough
};

Result<std::unique_ptr<ProgramConnection>> ProgramConnection::open(
    const ProgramPlace& place, ConnectionParts parts) {
    BOOST_OUTCOME_TRY(Program program, Program::start(place));
    auto state = std::make_shared<State>(std::move(parts), std::move(program));
    BOOST_OUTCOME_TRY(state->begin());
    return std::unique_ptr<ProgramConnection>(new ProgramConnection(std::move(state)));
}

ProgramConnection::~ProgramConnection() {
    close();
}

asio::awaitable<RpcAnswer> ProgramConnection::request(RpcRequest request) {
    const std::shared_ptr<State> state = state_;
    const std::int64_t id = request.id;
    if (state->closed) {
        co_return make_answer(Error(ErrorCode::kUnavailable, "the program has ended"));
    }
    const auto waiting = std::make_shared<Completion<RpcAnswer>>(state->parts.io);
    if (!state->send(std::move(request.text))) {
        co_return make_answer(
            Error(ErrorCode::kLimitExceeded, "the program does not read what it is sent"));
    }
    state->waiting.emplace(id, waiting);
    asio::steady_timer timer(state->parts.io, request.patience);
    timer.async_wait([state, waiting, id](const boost::system::error_code& error) {
        if (!error) {
            state->waiting.erase(id);
            waiting->set(make_answer(Error(ErrorCode::kTimeout, "no answer in time")));
        }
    });
    co_return co_await Completion<RpcAnswer>::wait(waiting);
}

void ProgramConnection::notify(std::string text) {
    (void)state_->send(std::move(text));  // Ignored: it may get lost.
}

void ProgramConnection::cancel(std::int64_t /*id*/, std::string notice) {
    notify(std::move(notice));
}

asio::awaitable<void> ProgramConnection::begin_session(
    std::string /*revision*/, std::string notice) {
    (void)state_->send(std::move(notice));  // Ignored: the next request tells.
    co_return;
}

void ProgramConnection::close() {
    if (!state_->closed) {
        state_->shut(Error(ErrorCode::kUnavailable, "the tool server is being stopped"));
    }
}

}  // namespace cellkeep::tools
