// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/service_setup.hpp"

#include "kernel-manager/cli/console.hpp"
#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/session/kernel_catalog.hpp"
#include "sandbox/isolation.hpp"
#include "sandbox/sandbox.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace cellkeep::cli {

namespace {

constexpr const char* kHostFiles = "host";
constexpr const char* kImageControl = "private_image";

Result<image::Prepared> prepare_images(
    const session::Installation& installation, const std::string& choice) {
    std::optional<std::string> digest;
    if (choice != kAutomaticImage) {
        digest = choice;
    }
    BOOST_OUTCOME_TRY(const std::string directory, image::default_store_directory());
    BOOST_OUTCOME_TRY(image::Store store, image::Store::open(directory));
    return image::prepare(
        store, session::image_sources(installation), digest, [](const std::string& line) {
            print_error("cellkeep: " + line + "\n");
        });
}

/// The catalog of the images; of the host's files if the operator accepts that and either wants it
/// or there can be no image.
Result<session::KernelCatalog> make_catalog(
    const session::Installation& installation, const std::string& choice, bool may_be_missing) {
    if (choice == kHostFiles) {
        if (!may_be_missing) {
            return Error(
                ErrorCode::kInvalidArgument,
                "image: the host's own files are no private image",
                "Accept it with --allow-degraded=private_image, or leave out --image=host.");
        }
        return session::KernelCatalog::create(installation);
    }
    // Says what of the installation is missing before time goes into an image of it.
    BOOST_OUTCOME_TRY(session::KernelCatalog of_host, session::KernelCatalog::create(installation));
    const auto images = prepare_images(installation, choice);
    if (images.has_error()) {
        Error error = images.error();
        if (!may_be_missing || choice != kAutomaticImage) {
            const std::string hint = error.hint();
            return std::move(error)
                .with_context("control private_image is absent: environment image")
                .with_hint(
                    hint + (hint.empty() ? "" : " ") +
                    "Or accept the host's own files with --allow-degraded=private_image.");
        }
        print_error("cellkeep: no environment image: " + error.message() + "\n");
        return of_host;
    }
    return session::KernelCatalog::create(installation, &images.value());
}

}  // namespace

Result<session::ServiceConfig> make_service_config(
    std::size_t sessions_max,
    const std::vector<std::string>& allow_degraded,
    const std::string& image) {
    session::ServiceConfig config;
    config.sessions_max = sessions_max;
    const auto& controls = sandbox::control_names();
    for (const std::string& name : allow_degraded) {
        if (std::find(controls.begin(), controls.end(), name) == controls.end()) {
            return Error(
                ErrorCode::kInvalidArgument,
                "--allow-degraded: there is no control \"" + name + "\"",
                "\"cellkeep doctor\" lists them.");
        }
        config.allow_degraded.insert(name);
    }
    BOOST_OUTCOME_TRY(const auto installation, session::find_installation());
    BOOST_OUTCOME_TRY(
        config.catalog,
        make_catalog(installation, image, config.allow_degraded.contains(kImageControl)));
    // Ignored: leftovers of a dead server cost memory, not correctness.
    (void)sandbox::sweep_leftovers();
    return config;
}

}  // namespace cellkeep::cli
