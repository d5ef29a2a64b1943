// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/backend.hpp"

#include <utility>

namespace cellkeep::session {

boost::asio::awaitable<Result<std::shared_ptr<Session>>> ServiceBackend::create(
    SessionOptions options) {
    return service_.create(std::move(options));
}

std::shared_ptr<Session> ServiceBackend::find(const std::string& id) const {
    return service_.find(id);
}

std::vector<std::shared_ptr<Session>> ServiceBackend::list() const {
    return service_.list();
}

Status ServiceBackend::remove(const std::string& id) {
    return service_.remove(id);
}

std::vector<std::string> ServiceBackend::languages() const {
    return service_.catalog().languages();
}

const KernelSpec* ServiceBackend::find_spec(const std::string& language) const {
    return service_.catalog().find(language);
}

LimitCeilings ServiceBackend::ceilings() const {
    return service_.config().ceilings;
}

}  // namespace cellkeep::session
