// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/service/service.hpp"

#include "kernel-manager/service/service_state.hpp"

#include <utility>

namespace cellkeep::session {

Service::Service(boost::asio::io_context& io, ServiceConfig config)
    : state_(std::make_shared<ServiceState>(io, std::move(config))) {
    state_->begin();
}

Service::~Service() {
    shutdown();
}

void Service::add_listener(SessionListener* listener) {
    state_->add_listener(listener);
}

boost::asio::awaitable<Result<std::shared_ptr<Session>>> Service::create(SessionOptions options) {
    const std::shared_ptr<ServiceState> state = state_;  // outlives the Service if need be
    auto created = co_await state->create(std::move(options));
    if (created.has_error()) {
        co_return std::move(created).error();
    }
    co_return std::shared_ptr<Session>(std::move(created).value());
}

std::shared_ptr<Session> Service::find(const std::string& id) const {
    return state_->find(id);
}

std::vector<std::shared_ptr<Session>> Service::list() const {
    return state_->list();
}

Status Service::remove(const std::string& id) {
    return state_->remove(id, {Death::Kind::kRequested, 0});
}

boost::asio::awaitable<void> Service::wait_until_gone(std::string id) {
    return state_->wait_until_gone(std::move(id));
}

std::size_t Service::spares() const {
    return state_->spares();
}

bool Service::ready() const {
    return state_->ready();
}

void Service::shutdown() {
    state_->shutdown();
}

std::vector<std::string> Service::languages() const {
    return state_->config().catalog.languages();
}

std::vector<NotOffered> Service::not_offered() const {
    return state_->config().catalog.not_offered();
}

const KernelSpec* Service::find_spec(const std::string& language) const {
    return state_->config().catalog.find(language);
}

LimitCeilings Service::ceilings() const {
    return state_->config().ceilings;
}

}  // namespace cellkeep::session
