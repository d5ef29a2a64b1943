// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/agent/backend.hpp"

#include <utility>

namespace cellkeep::agent {

boost::asio::awaitable<Result<std::shared_ptr<session::Session>>> ServiceBackend::create(
    session::SessionOptions options) {
    return service_.create(std::move(options));
}

std::shared_ptr<session::Session> ServiceBackend::find(const std::string& id) const {
    return service_.find(id);
}

std::vector<std::shared_ptr<session::Session>> ServiceBackend::list() const {
    return service_.list();
}

Status ServiceBackend::remove(const std::string& id) {
    return service_.remove(id);
}

std::vector<std::string> ServiceBackend::languages() const {
    return service_.catalog().languages();
}

session::LimitCeilings ServiceBackend::ceilings() const {
    return service_.config().ceilings;
}

}  // namespace cellkeep::agent
