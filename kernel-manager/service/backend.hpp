// SPDX-License-Identifier: Apache-2.0
//
// What a front end that speaks HTTP needs of the session service, and nothing more, so that its
// routes can be tested without sandboxes. ServiceBackend is the real one.
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/session/session.hpp"
#include "kernel-manager/session/session_options.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace cellkeep::session {

class Backend {
 public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    // The contracts are those of Service.
    virtual boost::asio::awaitable<Result<std::shared_ptr<Session>>> create(
        SessionOptions options) = 0;
    virtual std::shared_ptr<Session> find(const std::string& id) const = 0;
    virtual std::vector<std::shared_ptr<Session>> list() const = 0;
    virtual Status remove(const std::string& id) = 0;
    virtual std::vector<std::string> languages() const = 0;
    /// Languages that this server could have and does not.
    virtual std::vector<NotOffered> not_offered() const { return {}; }
    /// Null if the language is not offered.
    virtual const KernelSpec* find_spec(const std::string& language) const = 0;
    virtual LimitCeilings ceilings() const = 0;
    virtual bool ready() const = 0;
    /// Here: nothing is left of any.
    virtual boost::asio::awaitable<void> wait_until_gone(std::string id);
};

class ServiceBackend : public Backend {
 public:
    /// The service must outlive this.
    explicit ServiceBackend(Service& service) : service_(service) {}

    boost::asio::awaitable<Result<std::shared_ptr<Session>>> create(
        SessionOptions options) override;
    std::shared_ptr<Session> find(const std::string& id) const override;
    std::vector<std::shared_ptr<Session>> list() const override;
    Status remove(const std::string& id) override;
    boost::asio::awaitable<void> wait_until_gone(std::string id) override;
    std::vector<std::string> languages() const override;
    std::vector<NotOffered> not_offered() const override;
    const KernelSpec* find_spec(const std::string& language) const override;
    LimitCeilings ceilings() const override;
    bool ready() const override { return service_.ready(); }

 private:
    Service& service_;
};

}  // namespace cellkeep::session
