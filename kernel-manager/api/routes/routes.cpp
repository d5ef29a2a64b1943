// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/api/routes/routes.hpp"

#include "kernel-manager/api/docs.hpp"
#include "kernel-manager/api/packages/package_routes.hpp"
#include "kernel-manager/api/routes/approval_routes.hpp"
#include "kernel-manager/api/routes/archive_routes.hpp"
#include "kernel-manager/api/routes/branch_routes.hpp"
#include "kernel-manager/api/routes/checkpoint_routes.hpp"
#include "kernel-manager/api/routes/file_routes.hpp"
#include "kernel-manager/api/routes/merge_routes.hpp"
#include "kernel-manager/api/routes/port_routes.hpp"
#include "kernel-manager/api/routes/process_routes.hpp"
#include "kernel-manager/api/routes/tool_routes.hpp"
#include "kernel-manager/api/routes/upload_routes.hpp"

#include <optional>
#include <utility>

namespace cellkeep::api {

Routes::Routes(
    session::SessionService& backend,
    History& history,
    preview::Previews& previews,
    std::string version,
    std::shared_ptr<governance::Approvals> approvals,
    std::shared_ptr<session::PackageInstaller> packages)
    : backend_(backend),
      previews_(previews),
      lookup_(backend, history),
      service_(backend, history, std::move(version)),
      sessions_(backend, history, lookup_),
      executions_(history, lookup_),
      one_shots_(backend, history),
      batches_(backend, history, lookup_),
      approvals_(std::move(approvals)),
      packages_(
          packages ? std::move(packages)
                   : session::PackageInstaller::create(std::nullopt, nullptr)) {}

void Routes::add_to(http::Router& router) {
    add_docs(router);
    service_.add_to(router);
    sessions_.add_to(router);
    add_checkpoint_routes(router, lookup_);
    add_branch_routes(router, lookup_, backend_);
    add_merge_routes(router, lookup_);
    add_process_routes(router, lookup_);
    add_package_routes(router, lookup_, packages_);
    executions_.add_to(router);
    add_tool_routes(router, lookup_);
    add_approval_routes(router, approvals_);
    add_port_routes(router, lookup_, previews_);
    one_shots_.add_to(router);
    batches_.add_to(router);
    add_file_routes(router, lookup_);
    add_archive_routes(router, lookup_);
    add_upload_routes(router, lookup_);
}

}  // namespace cellkeep::api
