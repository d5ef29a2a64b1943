// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/packages/package_installer.hpp"

#include "protocol/message.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;

namespace {

constexpr const char* kPythonLanguage = "python";
/// The kernel's own variables say where its environment and its modules are. -I: what the session
/// has put into PATH and PYTHONPATH is not meant.
constexpr const char* kRunInstaller =
    "exec \"$CELLKEEP_ENVIRONMENT/bin/python\" -I "
    "\"$CELLKEEP_PYTHONPATH/cellkeep_kernel/packages.py\"";

Error bad_report(const std::string& what) {
    return {ErrorCode::kProtocol, "the installation's report " + what};
}

Result<std::string> read_reported(const json& from, const char* name) {
    const auto found = from.find(name);
    const auto* text = found == from.end() ? nullptr : found->get_ptr<const std::string*>();
    if (text == nullptr || text->empty() || text->size() > kReportedNameBytesMax) {
        return bad_report(std::string("has no ") + name + " that is one");
    }
    return *text;
}

Result<std::vector<InstalledPackage>> read_packages(const json& report, const char* name) {
    const auto list = report.find(name);
    if (list == report.end() || !list->is_array() || list->size() > kReportedPackagesMax) {
        return bad_report(std::string("has no list of what is ") + name);
    }
    std::vector<InstalledPackage> packages;
    for (const json& one : *list) {
        if (!one.is_object()) {
            return bad_report("names a package that is none");
        }
        InstalledPackage package;
        BOOST_OUTCOME_TRY(package.name, read_reported(one, "name"));
        BOOST_OUTCOME_TRY(package.version, read_reported(one, "version"));
        if (one.contains("replaced")) {
            BOOST_OUTCOME_TRY(package.replaced, read_reported(one, "replaced"));
        }
        packages.push_back(std::move(package));
    }
    return packages;
}

/// Ends with its scope, however that ends.
class Turn {
 public:
    Turn(std::set<std::string>& taken, std::string id) : taken_(taken), id_(std::move(id)) {
        taken_.insert(id_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { taken_.erase(id_); }

 private:
    std::set<std::string>& taken_;
    const std::string id_;
};

Result<PackageReport> read_run(const Result<process::FinishedRun>& run) {
    if (run.has_error()) {
        // How much its text has is the command's own bound: beyond the server's it is no report.
        return run.error().field() == process::kRunOutput ? bad_report("is too long") : run.error();
    }
    if (run.value().end.kind == process::CommandEnd::Kind::kFailed) {
        return Error(
            ErrorCode::kUnavailable, "the installer does not start: " + run.value().end.failure);
    }
    if (run.value().end.kind == process::CommandEnd::Kind::kSignaled) {
        return Error(
            ErrorCode::kConflict,
            "the installer was killed inside",
            "A client did it, or the session's memory was not enough.");
    }
    return parse_package_report(run.value().out);
}

}  // namespace

bool PackageReport::restart_needed() const {
    return std::any_of(installed.begin(), installed.end(), [](const InstalledPackage& package) {
        return package.replaced.has_value();
    });
}

Result<PackageReport> parse_package_report(std::string_view text) {
    const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!value.is_object()) {
        return bad_report("is none");
    }
    PackageReport report;
    BOOST_OUTCOME_TRY(report.installed, read_packages(value, "installed"));
    BOOST_OUTCOME_TRY(report.present, read_packages(value, "present"));
    const auto said = value.find("text");
    const auto cut = value.find("text_cut");
    const auto succeeded = value.find("succeeded");
    if (said == value.end() || !said->is_string() || cut == value.end() || !cut->is_boolean() ||
        succeeded == value.end() || !succeeded->is_boolean()) {
        return bad_report("does not say how it ended");
    }
    report.text = said->get<std::string>();
    if (report.text.size() > kInstallTextBytesMax) {
        return bad_report("is too long");
    }
    report.text_cut = cut->get<bool>();
    report.succeeded = succeeded->get<bool>();
    return report;
}

std::shared_ptr<PackageInstaller> PackageInstaller::create(
    std::optional<PackageIndex> index, Log log) {
    return std::shared_ptr<PackageInstaller>(
        new PackageInstaller(std::move(index), std::move(log)));
}

PackageInstaller::PackageInstaller(std::optional<PackageIndex> index, Log log)
    : index_(std::move(index)), log_(std::move(log)) {}

Status PackageInstaller::check(const Session& session) const {
    if (!index_) {
        return Error::in_field(
            ErrorCode::kPermissionDenied,
            kIndex,
            "this server's sessions install no packages, because its operator named no index",
            "Ask the operator for --package-index URL, or for an environment with the package "
            "(cellkeep env create).");
    }
    const SessionInfo info = session.info();
    if (info.language != kPythonLanguage) {
        return Error::in_field(
            ErrorCode::kInvalidArgument,
            kLanguage,
            "the session's language is " + info.language +
                ", and only sessions of Python take packages");
    }
    if (!egress::allows(info.network, index_->host.host, index_->host.port)) {
        return Error::in_field(
            ErrorCode::kConflict,
            kNetwork,
            "the session does not reach the index, " + to_string(index_->host),
            "Make a session with \"network\": {\"mode\": \"allowlist\", \"allow\": [\"" +
                to_string(index_->host) + "\"]}, or change the list of one that has a network.");
    }
    if (under_way_.contains(session.id())) {
        return Error::in_field(
            ErrorCode::kConflict, kInstallation, "another installation runs in the session");
    }
    return ok();
}

process::CommandOrder PackageInstaller::command() {
    process::CommandOrder order;
    order.argv = {"/bin/sh", "-c", kRunInstaller};
    order.label = "package installation";
    return order;
}

std::string PackageInstaller::input_of(const PackageOrder& order) const {
    return protocol::dump_json(
        {{"root", packages_inside()},
         {"index", index_->url},
         {"trusted_host", index_->plain ? to_string(index_->host) : ""},
         {"packages", order.python},
         {"allow_source", order.allow_source}});
}

boost::asio::awaitable<Result<PackageReport>> PackageInstaller::install(
    std::shared_ptr<Session> session, PackageOrder order) {
    const auto self = shared_from_this();
    BOOST_OUTCOME_CO_TRY(check(*session));
    process::CommandTable* const table = session->commands();
    if (table == nullptr) {
        co_return Error(ErrorCode::kUnavailable, "the session runs no commands");
    }
    const Turn turn(under_way_, session->id());
    const auto awake = session->hold_awake();
    const auto begun = std::chrono::steady_clock::now();
    process::RunBounds bounds{order.time, kInstallReportBytesMax};
    process::CommandOrder program = command();
    std::string input = input_of(order);
    const Result<process::FinishedRun> run =
        co_await process::run_to_end(*table, std::move(program), std::move(input), bounds);
    Result<PackageReport> report = read_run(run);
    if (log_) {
        log_(
            {session->id(),
             order,
             report.has_value() ? &report.value() : nullptr,
             report.has_error() ? &report.error() : nullptr,
             std::chrono::duration_cast<std::chrono::milliseconds>(
                 std::chrono::steady_clock::now() - begun)});
    }
    co_return report;
}

}  // namespace cellkeep::session
