// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/apt_get.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "kernel-manager/environments/operator_tool.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace cellkeep::environments {

namespace {

constexpr const char* kStatusFile = "/status";
constexpr const char* kExtendedFile = "/extended_states";
constexpr const char* kDownloads = "/downloads";
constexpr const char* kAptSaid = "/apt.out";
constexpr mode_t kOwnStatus = S_IRUSR | S_IWUSR;
constexpr const char* kUnknownPackage = "Unable to locate package";

std::vector<std::string> apt_variables(const std::string& home) {
    std::vector<std::string> variables{
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + home, "TMPDIR=" + home};
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment.
    if (const char* config = std::getenv("APT_CONFIG"); config != nullptr) {
        variables.push_back(std::string("APT_CONFIG=") + config);
    }
    const auto network = variables_of_the_network();
    variables.insert(variables.end(), network.begin(), network.end());
    return variables;
}

/// The end of it without "Reading package lists..." and the like.
std::string without_progress(std::string_view said) {
    std::string text;
    said.remove_prefix(said.size() - std::min(said.size(), kSaidBytesMax));
    while (!said.empty()) {
        const std::string_view line = said.substr(0, said.find('\n'));
        said.remove_prefix(line.size() < said.size() ? line.size() + 1 : said.size());
        if (!line.ends_with("...")) {
            text += std::string(line) + "\n";
        }
    }
    return text;
}

}  // namespace

Status AptGet::prepare(const std::string& status) const {
    for (const char* folder :
         {kDownloads, "/cache", "/cache/archives", "/cache/archives/partial"}) {
        const std::string path = place_.folder + folder;
        if (::mkdir(path.c_str(), S_IRWXU) < 0) {
            return Error::from_errno(errno, "mkdir(" + path + ")");
        }
    }
    BOOST_OUTCOME_TRY(write_file_atomically(place_.folder + kStatusFile, status, kOwnStatus));
    return write_file_atomically(place_.folder + kExtendedFile, "", kOwnStatus);
}

/// These count for more than what a file of settings says.
std::vector<std::string> AptGet::command(const std::vector<std::string>& what) const {
    std::vector<std::string> words{place_.program, "--yes"};
    for (const std::string& option :
         {"Dir::State::status=" + place_.folder + kStatusFile,
          "Dir::State::extended_states=" + place_.folder + kExtendedFile,
          "Dir::Cache=" + place_.folder + "/cache",
          "Dir::Cache::archives=" + place_.folder + "/cache/archives",
          "Dir::Cache::pkgcache=" + place_.folder + "/cache/pkgcache.bin",
          "Dir::Cache::srcpkgcache=" + place_.folder + "/cache/srcpkgcache.bin",
          "Dir::Log=" + place_.folder,
          std::string("Debug::NoLocking=true"),
          // A name is a name, and no pattern of names.
          std::string("APT::Cmd::Pattern-Only=true"),
          std::string("APT::Get::AllowUnauthenticated=false"),
          std::string("APT::Get::Show-User-Simulation-Note=false"),
          // The folder is this user's alone, so apt's own user could not write to it.
          std::string("APT::Sandbox::User=root"),
          std::string("APT::Install-Suggests=false")}) {
        words.insert(words.end(), {"-o", option});
    }
    words.insert(words.end(), what.begin(), what.end());
    return words;
}

Result<std::string> AptGet::run(const std::vector<std::string>& what) const {
    BoundedCommand command_line;
    command_line.argv = command(what);
    command_line.environment = apt_variables(place_.folder);
    command_line.directory = place_.bounded;
    command_line.runs_in = place_.folder + kDownloads;
    command_line.output = place_.folder + kAptSaid;
    command_line.deadline = place_.deadline;
    command_line.bytes_max = place_.bytes_max;
    BOOST_OUTCOME_TRY(const CommandEnd end, with_context(run_bounded(command_line), "apt-get"));
    BOOST_OUTCOME_TRY(
        std::string said,
        with_context(read_file(command_line.output, kAptSaidBytesMax), "apt-get"));
    if (!end.succeeded) {
        return Error(
            ErrorCode::kUnavailable,
            std::string(trim(without_progress(said) + end.said, " \t\r\n")));
    }
    return said;
}

/// A name is unknown also where no list was ever fetched.
Error AptGet::explain(const std::string& said) const {
    const std::string text = "apt-get cannot get these packages:\n" + said;
    if (said.find(kUnknownPackage) == std::string::npos) {
        return {ErrorCode::kUnavailable, text};
    }
    const auto lists =
        run({"-qq", "indextargets", "--format", "$(CREATED_BY)", "Created-By: Packages"});
    if (lists.has_value() && trim(lists.value(), " \n").empty()) {
        return {
            ErrorCode::kUnavailable,
            "apt-get knows no packages, because its lists are empty",
            "Run \"apt-get update\" as root, and try again."};
    }
    return {
        ErrorCode::kUnavailable,
        text,
        "Names are those of this machine's release. \"apt-get update\" renews the lists, and "
        "\"apt-cache search WORD\" searches them."};
}

Result<std::string> AptGet::simulate(const std::vector<std::string>& packages) const {
    // With "-qq" it would not say what does not go together.
    std::vector<std::string> what{
        "-q",
        "--simulate",
        "--no-install-recommends",
        "--no-remove",
        "--no-upgrade",
        "install",
        "--"};
    what.insert(what.end(), packages.begin(), packages.end());
    auto said = run(what);
    if (said.has_error() && said.error().code() == ErrorCode::kUnavailable) {
        return explain(said.error().message());
    }
    return said;
}

Status AptGet::download(const std::vector<DebianPackage>& packages) const {
    std::vector<std::string> what{"-qq", "download", "--"};
    for (const DebianPackage& package : packages) {
        what.push_back(package.name + "=" + package.version);
    }
    const auto done = run(what);
    if (done.has_error() && done.error().code() == ErrorCode::kUnavailable) {
        return explain(done.error().message());
    }
    BOOST_OUTCOME_TRY(done);
    return ok();
}

std::string AptGet::path_of(const DebianPackage& package) const {
    return place_.folder + kDownloads + "/" + file_of(package);
}

}  // namespace cellkeep::environments
