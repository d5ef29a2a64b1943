// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/package_archive.hpp"

#include "kernel-manager/environments/bounded_command.hpp"
#include "protocol/support/syscall.hpp"
#include "protocol/support/text.hpp"
#include "protocol/support/unique_fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace cellkeep::environments {

namespace {

/// They run before and after a package's files are there.
constexpr std::array<std::string_view, 2> kSetupScripts{"preinst", "postinst"};

/// Of util-linux, which is essential in Debian. dpkg-deb has a child write what it decompresses,
/// and that one lives on if dpkg-deb is killed: the kernel holds it to its bound (prlimit(1)).
constexpr const char* kPrlimit = "/usr/bin/prlimit";

/// A part of the package as an uncompressed archive.
Result<UniqueFd> decompress(const std::string& file, const char* part, const UnpackOrder& order) {
    BoundedCommand command;
    command.argv = {
        kPrlimit, "--fsize=" + std::to_string(order.bytes_max), order.dpkg_deb, part, file};
    command.environment = {
        "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + order.folder, "TMPDIR=" + order.folder};
    command.directory = order.folder;
    command.output = order.folder + "/archive";
    command.deadline = order.deadline;
    command.bytes_max = order.bytes_max;
    BOOST_OUTCOME_TRY(const CommandEnd end, with_context(run_bounded(command), "dpkg-deb"));
    std::error_code unknown;
    if (std::filesystem::file_size(command.output, unknown) >= order.bytes_max && !unknown) {
        return Error(
            ErrorCode::kLimitExceeded,
            "it unpacks to more than " + std::to_string(order.bytes_max) + " bytes");
    }
    if (!end.succeeded) {
        return Error(
            ErrorCode::kProtocol,
            "dpkg-deb cannot read it:\n" + std::string(trim(end.said, " \t\r\n")));
    }
    BOOST_OUTCOME_TRY(UniqueFd archive, open_file(command.output, O_RDONLY | O_NOFOLLOW));
    (void)::unlink(command.output.c_str());  // Ignored: the next one truncates it.
    return archive;
}

Result<std::string> text_in(int archive, const TarEntry& entry) {
    if (entry.bytes > kScriptBytesMax) {
        return Error(ErrorCode::kProtocol, entry.path + " is too long");
    }
    std::string text(entry.bytes, '\0');
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t got = ::pread(
            archive,
            text.data() + done,
            text.size() - done,
            static_cast<off_t>(entry.offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return Error::from_errno(got < 0 ? errno : EIO, "read(archive)");
        }
        done += static_cast<std::size_t>(got);
    }
    return text;
}

std::string field_of(std::string_view control, std::string_view name) {
    while (!control.empty()) {
        const std::string_view line = control.substr(0, control.find('\n'));
        control.remove_prefix(line.size() < control.size() ? line.size() + 1 : control.size());
        if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
            return std::string(trim(line.substr(name.size() + 1)));
        }
    }
    return {};
}

}  // namespace

Result<UnpackedPackage> unpack_package(
    const std::string& file,
    const DebianPackage& package,
    const UnpackOrder& order,
    SystemTree& tree) {
    UnpackedPackage unpacked;
    DebianPackage said;
    BOOST_OUTCOME_TRY(const UniqueFd control, decompress(file, "--ctrl-tarfile", order));
    BOOST_OUTCOME_TRY(const auto parts, read_tar(control.get()));
    for (const TarEntry& part : parts) {
        if (part.type != TarEntry::Type::kFile) {
            continue;
        }
        if (part.path == "control") {
            BOOST_OUTCOME_TRY(const std::string text, text_in(control.get(), part));
            said = {
                field_of(text, "Package"),
                field_of(text, "Version"),
                field_of(text, "Architecture")};
        }
        for (const std::string_view script : kSetupScripts) {
            if (part.path != script) {
                continue;
            }
            BOOST_OUTCOME_TRY(const std::string text, text_in(control.get(), part));
            const ScriptReading reading = read_maintainer_script(text);
            unpacked.does_more = unpacked.does_more || reading.does_more;
            unpacked.alternatives.insert(
                unpacked.alternatives.end(),
                reading.alternatives.begin(),
                reading.alternatives.end());
        }
    }
    if (said != package) {
        return Error(
            ErrorCode::kProtocol,
            "it says that it is " + said.name + " " + said.version + " for " + said.architecture);
    }
    BOOST_OUTCOME_TRY(const UniqueFd files, decompress(file, "--fsys-tarfile", order));
    BOOST_OUTCOME_TRY(const auto entries, read_tar(files.get()));
    BOOST_OUTCOME_TRY(tree.add(files.get(), entries));
    return unpacked;
}

}  // namespace cellkeep::environments
