// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/packages/package_routes.hpp"

#include "kernel-manager/api/bodies/order_reading.hpp"
#include "kernel-manager/api/bodies/package_body.hpp"
#include "kernel-manager/api/bodies/session_update_body.hpp"
#include "kernel-manager/http/message/problem.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cellkeep::api {

namespace {

using Answer = boost::asio::awaitable<http::Response>;
using Session = SessionLookup::Session;
using session::PackageInstaller;

nlohmann::json list_packages(const std::vector<session::InstalledPackage>& packages) {
    nlohmann::json list = nlohmann::json::array();
    for (const session::InstalledPackage& package : packages) {
        nlohmann::json one = {{"name", package.name}, {"version", package.version}};
        if (package.replaced) {
            one["replaced"] = *package.replaced;
        }
        list.push_back(std::move(one));
    }
    return list;
}

nlohmann::json report_answer(const session::PackageReport& report) {
    return {
        {"installed", list_packages(report.installed)},
        {"present", list_packages(report.present)},
        {"restart_needed", report.restart_needed()},
        {"output", report.text},
        {"output_truncated", report.text_cut}};
}

/// What is there instead, and who can tell it.
std::string packages_instead(const std::string& environment) {
    const std::string named = environment == "default" ? "NAME" : environment;
    return " The session has the packages of the environment \"" + environment +
           "\", which code lists with importlib.metadata. On the server `cellkeep env list` and "
           "`cellkeep env show " +
           named + "` say what named environments have.";
}

http::Response refuse_packages(const Error& error, const session::SessionInfo& info) {
    http::Problem problem = refused_field(error);
    if (error.field() == PackageInstaller::kIndex) {
        problem.kind = "no-package-index";
        problem.title = "Sessions of this server install no packages";
        problem.detail += packages_instead(info.environment.name);
        problem.extensions["environment"] = info.environment.name;
    } else if (error.field() == PackageInstaller::kNetwork) {
        problem.kind = "package-index-not-reached";
        problem.title = "The session does not reach the index of packages";
        problem.detail += packages_instead(info.environment.name);
        problem.extensions["environment"] = info.environment.name;
    } else if (error.field() == PackageInstaller::kInstallation) {
        problem.kind = "installation-running";
        problem.title = "Another installation runs";
    }
    return http::to_response(problem);
}

/// What was installed all the same is told, too.
http::Response tell_failed_packages(const session::PackageReport& report) {
    http::Problem problem = http::make_problem(
        422,
        "packages-not-installed",
        "The packages could not be installed",
        "\"output\" has what the installer says.");
    problem.extensions = report_answer(report);
    return http::to_response(problem);
}

Answer install_packages(
    std::shared_ptr<PackageInstaller> installer, http::Request& request, Session session) {
    OrderReader<session::PackageOrder> read = parse_package_order;
    auto body =
        co_await read_order<session::PackageOrder>(request, EmptyBody::kRefused, std::move(read));
    if (body.problem) {
        co_return http::to_response(*body.problem);
    }
    session->touch();
    const auto report = co_await installer->install(session, std::move(body.order));
    if (report.has_error()) {
        co_return refuse_packages(report.error(), session->info());
    }
    co_return report.value().succeeded ? http::make_json(200, report_answer(report.value()))
                                       : tell_failed_packages(report.value());
}

}  // namespace

void add_package_routes(
    http::Router& router,
    const SessionLookup& lookup,
    std::shared_ptr<session::PackageInstaller> installer) {
    router.add(
        {http::Access::kChange,
         "POST",
         "/v1/sessions/{id}/packages",
         lookup.with_session(
             [installer = std::move(installer)](http::Request& request, Session session) {
                 return install_packages(installer, request, std::move(session));
             })});
}

}  // namespace cellkeep::api
