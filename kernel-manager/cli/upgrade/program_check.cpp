// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/upgrade/program_check.hpp"

#include "kernel-manager/cli/upgrade/hand_over.hpp"
#include "kernel-manager/cli/version.hpp"
#include "kernel-manager/environments/bounded_command.hpp"
#include "protocol/json.hpp"

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

namespace cellkeep::cli {

using nlohmann::json;

namespace {

constexpr std::size_t kShownBytesMax = 300;

/// What is written last.
std::string_view last_line(std::string_view text) {
    const std::size_t end = text.find_last_not_of(" \r\n");
    if (end == std::string_view::npos) {
        return {};
    }
    text = text.substr(0, end + 1);
    return text.substr(text.rfind('\n') + 1);
}

/// The end of what a program said on one line: an error, and the hint behind it.
std::string shorten(std::string_view said) {
    std::istringstream words{std::string(said)};
    std::string line;
    for (std::string word; words >> word;) {
        line += (line.empty() ? "" : " ") + word;
    }
    return line.substr(line.size() - std::min(line.size(), kShownBytesMax));
}

/// This process's environment, but what the service manager says to it alone.
std::vector<std::string> make_environment(const std::vector<std::string>& addresses) {
    std::vector<std::string> variables;
    variables.push_back(std::string(kPassedAddressesVariable) + "=");
    for (const std::string& address : addresses) {
        variables.back() += (variables.back().back() == '=' ? "" : " ") + address;
    }
    for (char* const* at = ::environ; *at != nullptr; ++at) {
        const std::string_view variable(*at);
        if (!variable.starts_with("NOTIFY_SOCKET=") && !variable.starts_with("LISTEN_") &&
            !variable.starts_with(kPassedAddressesVariable)) {
            variables.emplace_back(variable);
        }
    }
    return variables;
}

}  // namespace

std::string take_over_answer() {
    json formats = json::array();
    for (int format = kHandOverFormatFirst; format <= kHandOverFormat; ++format) {
        formats.push_back(format);
    }
    const json answer = {
        {"take_over", {{"formats", std::move(formats)}, {"version", version_text()}}}};
    return answer.dump() + "\n";
}

Result<TakeOverAnswer> read_take_over_answer(std::string_view said) {
    const std::string_view line = last_line(said);
    const auto refuse = [line] {
        return Error(
            ErrorCode::kProtocol,
            "it says \"" + std::string(line.substr(0, kShownBytesMax)) +
                "\", and not what it can take over");
    };
    const auto answer = protocol::parse_json(line, "answer");
    if (answer.has_error() || !answer.value().is_object()) {
        return refuse();
    }
    const auto said_so = answer.value().find("take_over");
    if (said_so == answer.value().end() || !said_so->is_object()) {
        return refuse();
    }
    const auto formats = said_so->find("formats");
    const auto version = said_so->find("version");
    if (formats == said_so->end() || !formats->is_array() || version == said_so->end() ||
        !version->is_string()) {
        return refuse();
    }
    const auto name = version->get<std::string>().substr(0, kShownBytesMax);
    for (int format = kHandOverFormat; format >= kHandOverFormatFirst; --format) {
        if (std::find(formats->begin(), formats->end(), json(format)) != formats->end()) {
            return TakeOverAnswer{name, format};
        }
    }
    return Error(
        ErrorCode::kUnavailable,
        "version " + name + " cannot read what this one hands over (format " +
            std::to_string(kHandOverFormat) + ")");
}

Status check_program_file(const std::string& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) {
        return Error::from_errno(errno, "stat(" + path + ")");
    }
    const auto refuse = [&path](const char* why) {
        return Error(ErrorCode::kPermissionDenied, path + " " + why);
    };
    if (!S_ISREG(about.st_mode)) {
        return refuse("is not a file");
    }
    if (about.st_uid != 0 && about.st_uid != ::geteuid()) {
        return refuse("belongs to another user");
    }
    if ((about.st_mode & S_IWOTH) != 0) {
        return refuse("can be written by everybody");
    }
    if (::access(path.c_str(), X_OK) != 0) {
        return refuse("is not executable");
    }
    return ok();
}

std::optional<std::vector<std::string>> read_passed_addresses() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment.
    const char* const said = ::getenv(kPassedAddressesVariable);
    if (said == nullptr) {
        return std::nullopt;
    }
    std::vector<std::string> addresses;
    std::istringstream words(said);
    for (std::string word; words >> word;) {
        addresses.push_back(word);
    }
    return addresses;
}

Result<TakeOverAnswer> check_program(const ProgramCheck& check) {
    BOOST_OUTCOME_TRY(check_program_file(check.line.program));
    if (::mkdir(check.folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
        return Error::from_errno(errno, "mkdir(" + check.folder + ")");
    }
    environments::BoundedCommand command;
    command.argv = check.line.words;
    command.argv.at(0) = check.line.program;
    command.argv.emplace_back(kTakeOverCheckFlag);
    command.environment = make_environment(check.addresses);
    command.directory = check.folder;
    command.runs_in = ".";  // the options may name files from here
    command.deadline = std::chrono::steady_clock::now() + check.patience;
    command.bytes_max = kTakeOverCheckBytesMax;
    command.stop = check.stop;
    const auto done = environments::run_bounded(command);
    std::error_code ignored;  // Ignored: it is private, and the next check uses it again.
    (void)std::filesystem::remove_all(check.folder, ignored);
    BOOST_OUTCOME_TRY(const environments::CommandEnd end, done);
    if (!end.succeeded) {
        return Error(ErrorCode::kUnavailable, "its check failed: " + shorten(end.said));
    }
    return read_take_over_answer(end.said);
}

}  // namespace cellkeep::cli
