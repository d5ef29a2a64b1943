// SPDX-License-Identifier: Apache-2.0
//
// What the session API needs of the session service, and nothing more, so that its routes can be
// tested without sandboxes. ServiceBackend is the real one.
#pragma once

#include "kernel-manager/session/service.hpp"
#include "kernel-manager/session/session.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::agent {

class Backend {
 public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    // The contracts are those of session::Service.
    virtual boost::asio::awaitable<Result<std::shared_ptr<session::Session>>> create(
        session::SessionOptions options) = 0;
    virtual std::shared_ptr<session::Session> find(const std::string& id) const = 0;
    virtual std::vector<std::shared_ptr<session::Session>> list() const = 0;
    virtual Status remove(const std::string& id) = 0;
    virtual std::vector<std::string> languages() const = 0;
    virtual session::LimitCeilings ceilings() const = 0;
};

class ServiceBackend : public Backend {
 public:
    /// The service must outlive this.
    explicit ServiceBackend(session::Service& service) : service_(service) {}

    boost::asio::awaitable<Result<std::shared_ptr<session::Session>>> create(
        session::SessionOptions options) override;
    std::shared_ptr<session::Session> find(const std::string& id) const override;
    std::vector<std::shared_ptr<session::Session>> list() const override;
    Status remove(const std::string& id) override;
    std::vector<std::string> languages() const override;
    session::LimitCeilings ceilings() const override;

 private:
    session::Service& service_;
};

}  // namespace cellkeep::agent
