// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep doctor`: what the sandbox could apply on this host, control by control.
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/doctor_report.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/installation.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "sandbox/host_features.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::cli {

namespace {

/// What a session's kernel would see: from the images if they have been made.
Result<session::KernelSpec> find_kernel() {
    BOOST_OUTCOME_TRY(const auto installation, session::find_installation());
    BOOST_OUTCOME_TRY(const std::string directory, image::default_store_directory());
    BOOST_OUTCOME_TRY(image::Store store, image::Store::open(directory));
    BOOST_OUTCOME_TRY(
        const auto images, image::find_prepared(store, session::image_sources(installation)));
    BOOST_OUTCOME_TRY(const auto catalog, session::KernelCatalog::create(installation, &images));
    return *catalog.find("python");
}

/// Looks at the host's own files. What an image lacks is logged when a server starts from it.
Languages find_languages() {
    Languages languages;
    const auto installation = session::find_installation();
    if (!installation) {
        return languages;  // probe() reports it
    }
    const auto catalog = session::KernelCatalog::create(installation.value());
    if (!catalog) {
        return languages;
    }
    languages.offered = catalog.value().languages();
    languages.not_offered = catalog.value().not_offered();
    return languages;
}

sandbox::HostFeatures probe() {
    const auto kernel = find_kernel();
    if (kernel.has_value()) {
        return sandbox::probe_host(kernel.value().images, kernel.value().read_only);
    }
    sandbox::HostFeatures host = sandbox::probe_host();
    // Where no control can be applied, no server starts, and none makes an image.
    const bool has_controls =
        std::any_of(host.controls.begin(), host.controls.end(), [](const auto& control) {
            return control.state == sandbox::ControlState::kApplied;
        });
    for (sandbox::Control& control : host.controls) {
        if (control.name != "private_image") {
            continue;
        }
        if (has_controls && kernel.error().code() == ErrorCode::kNotFound) {
            control.state = sandbox::ControlState::kApplied;
            control.mechanism =
                "the first server to start makes the image (cellkeep image build: now)";
            control.detail.clear();
            control.fix.clear();
        } else {
            control.detail = kernel.error().message();
            control.fix = kernel.error().hint().empty() ? control.fix : kernel.error().hint();
        }
    }
    return host;
}

}  // namespace

int doctor(DoctorFormat format) {
    const sandbox::HostFeatures host = probe();
    const Languages languages = find_languages();
    print(
        format == DoctorFormat::kJson ? doctor_json(host, languages)
                                      : doctor_table(host, languages));
    return sandbox::IsolationReport{host.controls}.complete() ? kExitDone : kExitFailed;
}

}  // namespace cellkeep::cli
