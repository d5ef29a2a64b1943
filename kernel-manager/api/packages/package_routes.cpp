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

http::Problem without_index(http::Problem problem, const std::string& environment) {
    problem.detail += packages_instead(environment);
    problem.extensions["environment"] = environment;
    return problem;
}

http::Problem refuse_packages(const Error& error, const std::string& environment) {
    const std::string detail = http::problem_from(error).detail;
    if (error.field() == PackageInstaller::kIndex) {
        return without_index(
            http::make_problem(
                403, "no-package-index", "Sessions of this server install no packages", detail),
            environment);
    }
    if (error.field() == PackageInstaller::kNetwork) {
        return without_index(
            http::make_problem(
                409,
                "package-index-not-reached",
                "The session does not reach the index of packages",
                detail),
            environment);
    }
    if (error.field() == PackageInstaller::kInstallation) {
        return http::make_problem(409, "installation-running", "Another installation runs", detail);
    }
    if (error.code() == ErrorCode::kProtocol) {
        return http::make_problem(
            502, "installer-protocol", "The installer inside answered nonsense", detail);
    }
    return refused_field(error);
}

/// The answer names what pip has installed before it failed, too.
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
        co_return http::to_response(
            refuse_packages(report.error(), session->info().environment.name));
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
