// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/backend.hpp"

#include <utility>

namespace cellkeep::session {

boost::asio::awaitable<void> Backend::wait_until_gone(std::string /*id*/) {
    co_return;
}

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

boost::asio::awaitable<void> ServiceBackend::wait_until_gone(std::string id) {
    return service_.wait_until_gone(std::move(id));
}

std::vector<std::string> ServiceBackend::languages() const {
    return service_.catalog().languages();
}

std::vector<NotOffered> ServiceBackend::not_offered() const {
    return service_.catalog().not_offered();
}

const KernelSpec* ServiceBackend::find_spec(const std::string& language) const {
    return service_.catalog().find(language);
}

LimitCeilings ServiceBackend::ceilings() const {
    return service_.config().ceilings;
}

}  // namespace cellkeep::session
