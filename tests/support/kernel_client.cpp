// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_client.hpp"

#include "protocol/frame.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/support/skip.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <stdexcept>
#include <utility>

namespace cellkeep::test {

namespace {

using nlohmann::json;
using protocol::Channel;
using protocol::Message;

template <typename T>
T take(Result<T> result) {
    if (!result) {
        throw std::runtime_error(result.error().message());
    }
    return std::move(result.value());
}

void wait_readable(int fd, const char* what) {
    pollfd entry{fd, POLLIN, 0};
    const auto patience = std::chrono::milliseconds(kPatience).count();
    if (::poll(&entry, 1, static_cast<int>(patience)) != 1) {
        throw std::runtime_error(std::string("no answer in time: ") + what);
    }
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) {
        list.push_back(text.data());
    }
    list.push_back(nullptr);
    return list;
}

}  // namespace

KernelClient::KernelClient(const KernelStart& start) {
    if (::access(CELLKEEP_TEST_ENVIRONMENT "/bin/python", X_OK) != 0) {
        skip("python-environment", "there is no " CELLKEEP_TEST_ENVIRONMENT);
    }
    auto link = take(make_socket_pair(SOCK_STREAM));
    Pipe out = take(make_pipe());
    Pipe err = take(make_pipe());
    std::vector<std::string> variables{
        "HOME=" + directory_.path(),
        "TMPDIR=" + temporary_.path(),
        "PATH=/usr/bin:/bin",
        "LANG=C.UTF-8",
        "CELLKEEP_PYTHONPATH=" CELLKEEP_TEST_PACKAGE};
    if (!start.environment.empty()) {
        variables.push_back("CELLKEEP_ENVIRONMENT=" + start.environment);
    }
    variables.insert(variables.end(), start.variables.begin(), start.variables.end());
    std::vector<std::string> arguments = start.program;
    const std::vector<char*> argv = pointers(arguments);
    const std::vector<char*> envp = pointers(variables);

    pid_ = ::fork();
    if (pid_ < 0) {
        throw std::runtime_error("fork failed");
    }
    if (pid_ == 0) {
        // dup2 clears close-on-exec; the link may itself be descriptor 3.
        const int kernel_end = ::fcntl(link.second.get(), F_DUPFD, 10);
        (void)::setpgid(0, 0);
        (void)::signal(SIGPIPE, SIG_DFL);
        const int null = ::open("/dev/null", O_RDONLY);
        const bool ready = ::chdir(directory_.path().c_str()) == 0 && ::dup2(null, 0) == 0 &&
                           ::dup2(out.write_end.get(), 1) == 1 &&
                           ::dup2(err.write_end.get(), 2) == 2 &&
                           (start.with_link ? ::dup2(kernel_end, 3) == 3 : ::close(3) <= 0);
        (void)::syscall(SYS_close_range, 4U, ~0U, 0U);
        if (ready) {
            (void)::execve(argv[0], argv.data(), envp.data());
        }
        ::_exit(127);
    }
    (void)::setpgid(pid_, pid_);  // Ignored: the child does the same; the first call wins.
    link_ = std::move(link.first);
    stdout_ = std::move(out.read_end);
    stderr_ = std::move(err.read_end);
    (void)set_nonblocking(stdout_.get());
    (void)set_nonblocking(stderr_.get());
}

KernelClient::~KernelClient() {
    if (pid_ > 0) {
        (void)::kill(-pid_, SIGKILL);
        (void)::waitpid(pid_, nullptr, 0);
    }
}

std::string KernelClient::send(
    Channel channel,
    std::string_view type,
    const json& content,
    const json& parent,
    const std::vector<std::string_view>& buffers) {
    const protocol::Header header = protocol::make_header(type, "test-session", "tester");
    const std::string header_text = protocol::dump_json(protocol::to_json(header));
    const std::string parent_text = protocol::dump_json(parent);
    const std::string content_text = protocol::dump_json(content);
    const Message message = take(Message::create(
        {.channel = channel,
         .header = header_text,
         .parent_header = parent_text,
         .metadata = "{}",
         .content = content_text,
         .buffers = buffers}));
    send_bytes(protocol::encode_link_prefix(message.frame().size()));
    send_bytes(message.frame());
    return header.msg_id;
}

std::string KernelClient::send_with_descriptor(
    std::string_view type, const json& content, int descriptor) {
    const protocol::Header header = protocol::make_header(type, "test-session", "tester");
    const Message message = Message::make(Channel::kControl, header, json::object(), content);
    const std::string prefix = protocol::encode_link_prefix(message.frame().size());
    const std::array<int, 1> descriptors{descriptor};
    if (!send_with_fds(
            link_.get(), std::as_bytes(std::span(prefix.data(), prefix.size())), descriptors)) {
        throw std::runtime_error("the kernel has closed the link");
    }
    send_bytes(message.frame());
    return header.msg_id;
}

void KernelClient::send_bytes(std::string_view bytes) {
    if (!write_all(link_.get(), bytes)) {
        throw std::runtime_error("the kernel has closed the link");
    }
}

void KernelClient::read_exactly(std::string& bytes, std::size_t size) {
    bytes.resize(size);
    std::size_t done = 0;
    while (done < size) {
        wait_readable(link_.get(), "kernel link");
        const ssize_t got = ::recv(link_.get(), bytes.data() + done, size - done, 0);
        if (got <= 0) {
            bytes.resize(done);
            return;
        }
        done += static_cast<std::size_t>(got);
    }
}

std::optional<Message> KernelClient::receive() {
    std::string prefix;
    read_exactly(prefix, protocol::kLinkPrefixBytes);
    if (prefix.empty()) {
        return std::nullopt;
    }
    std::size_t size = 0;
    for (std::size_t index = prefix.size(); index > 0; --index) {
        size = (size << 8U) | static_cast<unsigned char>(prefix[index - 1]);
    }
    std::string frame;
    read_exactly(frame, size);
    return take(Message::from_frame(std::move(frame)));
}

Messages KernelClient::receive_until(std::string_view type) {
    Messages messages;
    while (messages.empty() || messages.back().header().msg_type != type) {
        std::optional<Message> message = receive();
        if (!message) {
            throw std::runtime_error("the kernel ended; stderr: " + read_stderr());
        }
        messages.push_back(std::move(*message));
    }
    return messages;
}

Messages KernelClient::receive_until_idle(const std::string& msg_id) {
    Messages messages;
    while (true) {
        for (Message& message : receive_until("status")) {
            messages.push_back(std::move(message));
        }
        const Message& last = messages.back();
        if (last.parent().msg_id == msg_id && content(last)["execution_state"] == "idle") {
            return messages;
        }
    }
}

Messages KernelClient::request(std::string_view type, const json& content, Channel channel) {
    return receive_until_idle(send(channel, type, content));
}

std::string KernelClient::start(std::string_view code, const json& changes) {
    json request{
        {"code", code},
        {"silent", false},
        {"store_history", true},
        {"user_expressions", json::object()},
        {"allow_stdin", false},
        {"stop_on_error", true}};
    if (changes.is_object()) {
        request.update(changes);
    }
    return send(Channel::kShell, "execute_request", request);
}

Messages KernelClient::execute(std::string_view code, const json& changes) {
    return receive_until_idle(start(code, changes));
}

void KernelClient::interrupt() {
    if (::kill(pid_, SIGINT) != 0) {
        throw std::runtime_error("kill(SIGINT) failed");
    }
}

int KernelClient::wait_for_end() {
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    wait_readable(pidfd.get(), "end of the kernel");
    int status = 0;
    (void)::waitpid(pid_, &status, 0);
    (void)::kill(-pid_, SIGKILL);  // Ignored: usually nothing of the group is left.
    pid_ = -1;
    return status;
}

std::string KernelClient::read_stdout_until(std::string_view text) {
    std::string all;
    while (all.find(text) == std::string::npos) {
        wait_readable(stdout_.get(), "stdout");
        const std::string more = read_stdout();
        if (more.empty()) {
            throw std::runtime_error("stdout is closed");
        }
        all += more;
    }
    return all;
}

std::string KernelClient::drain(int fd) {
    std::string text;
    std::array<char, 65536> chunk{};
    ssize_t got = 0;
    while ((got = ::read(fd, chunk.data(), chunk.size())) > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return text;
}

json content(const Message& message) {
    return take(message.parse_content());
}

json metadata(const Message& message) {
    return take(message.parse_metadata());
}

const Message& first(const Messages& messages, std::string_view type) {
    for (const Message& message : messages) {
        if (message.header().msg_type == type) {
            return message;
        }
    }
    throw std::runtime_error("no message of type " + std::string(type));
}

std::size_t count(const Messages& messages, std::string_view type) {
    std::size_t found = 0;
    for (const Message& message : messages) {
        found += message.header().msg_type == type ? 1U : 0U;
    }
    return found;
}

json only(const Messages& messages, std::string_view type) {
    if (count(messages, type) != 1) {
        throw std::runtime_error(
            std::to_string(count(messages, type)) + " messages of type " + std::string(type));
    }
    return content(first(messages, type));
}

std::string text_of(const Messages& messages, std::string_view stream) {
    std::string text;
    for (const Message& message : messages) {
        if (message.header().msg_type != "stream") {
            continue;
        }
        const json part = content(message);
        if (part["name"] == stream) {
            text += part["text"].get<std::string>();
        }
    }
    return text;
}

json error_place(const Messages& messages) {
    return metadata(first(messages, "execute_reply")).at("cellkeep").at("error");
}

}  // namespace cellkeep::test
