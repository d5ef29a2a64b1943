// SPDX-License-Identifier: Apache-2.0
//
// The parts of a Service and how they are connected. Each part knows of the others only what its
// hooks pass to it. What a part has begun may outlive the Service; then the hooks do nothing.
// io_context thread only.
#pragma once

#include "kernel-manager/service/admission.hpp"
#include "kernel-manager/service/preparation.hpp"
#include "kernel-manager/service/readiness.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/service/service_config.hpp"
#include "kernel-manager/service/session_factory.hpp"
#include "kernel-manager/service/session_registry.hpp"
#include "kernel-manager/service/session_starter.hpp"
#include "kernel-manager/service/session_teardown.hpp"
#include "kernel-manager/service/spare_sessions.hpp"
#include "kernel-manager/service/warm_starts.hpp"
#include "kernel-manager/warm/sandbox_maker.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>

namespace cellkeep::session {

struct Service::Parts : std::enable_shared_from_this<Service::Parts> {
    static std::shared_ptr<Parts> create(boost::asio::io_context& io, ServiceConfig config);

    /// The zygotes and the first spares are made from now on.
    void begin();
    /// Service::provide().
    void provide(KernelCatalog catalog);
    /// Service::offer().
    bool offer(KernelSpec spec);

    std::shared_ptr<const ServiceConfig> config;
    std::function<void(const std::string&)> log;  // never empty
    std::shared_ptr<Preparation> preparation;
    std::shared_ptr<Admission> admission;
    std::shared_ptr<SessionTeardown> teardown;
    std::shared_ptr<SandboxMaker> maker;
    std::shared_ptr<WarmStarts> warm;
    std::shared_ptr<Readiness> readiness;
    std::shared_ptr<SessionFactory> factory;
    std::shared_ptr<SessionStarter> starter;
    std::shared_ptr<SpareSessions> spares;
    std::shared_ptr<SessionRegistry> registry;

 private:
    WarmStarts::Kernels make_zygote_keepers();
    WarmStarts::OnDemand zygote_on_demand(const std::string& kernel);
    /// on_ready: as WarmStart::Hooks.
    std::shared_ptr<WarmStart> make_warm_start(
        const KernelSpec& spec, std::function<void()> on_ready) const;
    void make_admission();
    void make_teardown(boost::asio::io_context& io);
    void make_warm_starts(boost::asio::io_context& io);
    void make_factory_and_starter(boost::asio::io_context& io);
    void make_spares(boost::asio::io_context& io);
    void make_registry();

    boost::asio::io_context* io_ = nullptr;
    std::shared_ptr<ServiceConfig>
        changing_;          // the same as config: provide() and offer() write to it
    KernelCatalog former_;  // its specs stay valid as long as the service
};

}  // namespace cellkeep::session
