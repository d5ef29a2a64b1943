// SPDX-License-Identifier: Apache-2.0
//
// A client for one kernel program, straight over a socket pair: no sandbox, no server. Every wait
// has a deadline of kPatience; what goes wrong is thrown, so a test case fails and never hangs.
#pragma once

#include "protocol/message.hpp"
#include "protocol/support/unique_fd.hpp"
#include "tests/support/temporary_directory.hpp"

#include <nlohmann/json.hpp>

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellkeep::test {

inline constexpr std::chrono::seconds kPatience{25};

using Messages = std::vector<protocol::Message>;

/// How to start it, where that differs from what the server does.
struct KernelStart {
    std::vector<std::string> program = {CELLKEEP_TEST_KERNEL};  // and its arguments
    std::string environment = CELLKEEP_TEST_ENVIRONMENT;  // "" leaves CELLKEEP_ENVIRONMENT out
    bool with_link = true;
    std::vector<std::string> variables = {};  // "NAME=value"
};

class KernelClient {
 public:
    /// Starts the program in a fresh working directory. Skips the test case if there is no Python
    /// environment.
    explicit KernelClient(const KernelStart& start = {});
    KernelClient(const KernelClient&) = delete;
    KernelClient& operator=(const KernelClient&) = delete;
    /// Kills the kernel's process group and reaps the kernel.
    ~KernelClient();

    /// Returns the msg_id.
    std::string send(
        protocol::Channel channel,
        std::string_view type,
        const nlohmann::json& content,
        const nlohmann::json& parent = nlohmann::json::object(),
        const std::vector<std::string_view>& buffers = {});
    void send_bytes(std::string_view bytes);
    /// The same on control, with a descriptor that goes along. Returns the msg_id.
    std::string send_with_descriptor(
        std::string_view type, const nlohmann::json& content, int descriptor);

    /// The next message; nothing if the kernel closed the link.
    std::optional<protocol::Message> receive();
    /// Everything up to and including the first message of this type.
    Messages receive_until(std::string_view type);
    /// Everything up to and including the idle status that answers this request.
    Messages receive_until_idle(const std::string& msg_id);

    Messages request(
        std::string_view type,
        const nlohmann::json& content,
        protocol::Channel channel = protocol::Channel::kShell);
    /// execute_request without stdin; changes replaces fields of its content.
    Messages execute(std::string_view code, const nlohmann::json& changes = {});
    /// Sends the request only.
    std::string start(std::string_view code, const nlohmann::json& changes = {});

    /// What is in the kernel's stdout or stderr pipe at this moment.
    std::string read_stdout() { return drain(stdout_.get()); }
    std::string read_stderr() { return drain(stderr_.get()); }
    /// Waits until text has come on stdout; with all that came with it.
    std::string read_stdout_until(std::string_view text);

    void interrupt();
    void close_link() { link_ = UniqueFd(); }
    /// From now on it speaks with another process. Its link and its pipes are ours.
    void take_over(UniqueFd link, UniqueFd stdout_fd, UniqueFd stderr_fd) {
        link_ = std::move(link);
        stdout_ = std::move(stdout_fd);
        stderr_ = std::move(stderr_fd);
    }
    /// As waitpid(2) reports it.
    int wait_for_end();
    pid_t pid() const { return pid_; }
    const std::string& directory() const { return directory_.path(); }

 private:
    void read_exactly(std::string& bytes, std::size_t size);
    static std::string drain(int fd);

    TemporaryDirectory directory_;
    TemporaryDirectory temporary_;  // the kernel's TMPDIR
    UniqueFd link_;
    UniqueFd stdout_;
    UniqueFd stderr_;
    pid_t pid_ = -1;
};

// --- looking at what came
// ----------------------------------------------------------------------------

nlohmann::json content(const protocol::Message& message);
nlohmann::json metadata(const protocol::Message& message);
/// The content of the one message of this type; throws if there is none or more than one.
nlohmann::json only(const Messages& messages, std::string_view type);
std::size_t count(const Messages& messages, std::string_view type);
const protocol::Message& first(const Messages& messages, std::string_view type);
/// All text of one stream, joined.
std::string text_of(const Messages& messages, std::string_view stream);
/// The metadata.cellkeep.error of the execute_reply.
nlohmann::json error_place(const Messages& messages);

}  // namespace cellkeep::test
