// SPDX-License-Identifier: Apache-2.0
//
// Installs packages in sessions that live: a command inside a session's own sandbox, under its
// limits, with the session's own network. Nothing is downloaded or unpacked outside. For all front
// ends; io_context thread only.
#pragma once

#include "kernel-manager/process/run_to_end.hpp"
#include "kernel-manager/session/packages/package_index.hpp"
#include "kernel-manager/session/session.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::session {

/// What an installation may take, unless its order says otherwise, and at most.
inline constexpr std::chrono::milliseconds kInstallTimeDefault = std::chrono::minutes(5);
inline constexpr std::chrono::milliseconds kInstallTimeMax = std::chrono::minutes(30);
/// The end of what the installer says; what comes before is left out. Inside it is as many bytes
/// of UTF-8 at most (kernels/python/cellkeep_kernel/packages.py).
inline constexpr std::size_t kInstallTextBytesMax = 64ULL << 10U;
/// All that the command inside may write: its report, with that text.
inline constexpr std::size_t kInstallReportBytesMax = 256ULL << 10U;
/// Packages of a report, and the bytes of a name or a version.
inline constexpr std::size_t kReportedPackagesMax = 1000;
inline constexpr std::size_t kReportedNameBytesMax = 128;

struct PackageOrder {
    std::vector<std::string> python;  // each passes environments::check_package()
    /// Packages that exist as source only are built, which runs their code inside.
    bool allow_source = false;
    std::chrono::milliseconds time = kInstallTimeDefault;
};

struct InstalledPackage {
    std::string name;
    std::string version;
    std::optional<std::string> replaced;  // the version that was there before
};

/// As the session's own code tells it: about itself alone.
struct PackageReport {
    bool succeeded = false;
    std::vector<InstalledPackage> installed;  // also of an installation that failed
    std::vector<InstalledPackage> present;    // were asked for, and there already
    std::string text;                         // what the installer says
    bool text_cut = false;
    /// Code that has imported what was replaced keeps the version that was there.
    bool restart_needed() const;
};

/// kProtocol if it is none, or more than the bounds above.
Result<PackageReport> parse_package_report(std::string_view json);

class PackageInstaller : public std::enable_shared_from_this<PackageInstaller> {
 public:
    /// What an error is about (Error::field()).
    static constexpr const char* kIndex = "index";                // the operator named none
    static constexpr const char* kNetwork = "network";            // the session does not reach it
    static constexpr const char* kInstallation = "installation";  // another one runs
    static constexpr const char* kLanguage = "python";            // the session has another one

    /// How an installation has ended; the error is none if there is a report.
    struct Outcome {
        const std::string& session_id;
        const PackageOrder& order;
        const PackageReport* report;  // null: there is none
        const Error* error;           // null: there is none
        std::chrono::milliseconds took;
    };
    using Log = std::function<void(const Outcome&)>;

    /// index: nothing if the operator named none. log may be empty.
    static std::shared_ptr<PackageInstaller> create(std::optional<PackageIndex> index, Log log);
    PackageInstaller(const PackageInstaller&) = delete;
    PackageInstaller& operator=(const PackageInstaller&) = delete;
    ~PackageInstaller() = default;

    const std::optional<PackageIndex>& index() const { return index_; }

    /// Goes on if its caller goes. kPermissionDenied (kIndex), kConflict (kNetwork, kInstallation),
    /// kInvalidArgument (kLanguage): see above; kTimeout: it took longer than order.time, and is
    /// killed; kProtocol: the command inside did not report; kConflict: it was killed by another;
    /// else as process::run_to_end().
    boost::asio::awaitable<Result<PackageReport>> install(
        std::shared_ptr<Session> session, PackageOrder order);

 private:
    PackageInstaller(std::optional<PackageIndex> index, Log log);
    Status check(const Session& session) const;
    static process::CommandOrder command();
    std::string input_of(const PackageOrder& order) const;

    const std::optional<PackageIndex> index_;
    const Log log_;
    std::set<std::string> under_way_;  // ids of sessions
};

}  // namespace cellkeep::session
