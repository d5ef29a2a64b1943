// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/serve/service_setup.hpp"

#include "kernel-manager/cli/kernel/kernelspec_paths.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/image/image_mount.hpp"
#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"
#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/foreign_launch.hpp"
#include "kernel-manager/languages/installation.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "sandbox/policy/isolation.hpp"
#include "sandbox/policy/plan_builder.hpp"
#include "sandbox/sandbox.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

namespace cellkeep::cli {

namespace {

constexpr const char* kHostFiles = "host";
constexpr const char* kImageControl = "private_image";

struct Offer {
    session::Installation installation;
    session::ForeignKernels foreign;
};

/// "python3" is what Jupyter's clients call the language "python".
bool is_taken(const std::string& name, const session::KernelCatalog& catalog) {
    return name == jupyter::kDefaultKernelName || catalog.find(name) != nullptr;
}

image::Sources sources_of(const Offer& offer) {
    image::Sources sources = session::image_sources(offer.installation);
    if (!offer.foreign.found.empty()) {
        session::add_foreign_sources(offer.foreign, offer.installation, sources);
    }
    return sources;
}

Result<image::Store> open_images() {
    BOOST_OUTCOME_TRY(const std::string directory, image::default_store_directory());
    return image::Store::open(directory);
}

void say_progress(const std::string& line) {
    print_error("cellkeep: " + line + "\n");
}

Result<image::Prepared> prepare_images(const Offer& offer, const std::string& choice) {
    std::optional<std::string> digest;
    if (choice != kAutomaticImage) {
        digest = choice;
    }
    BOOST_OUTCOME_TRY(image::Store store, open_images());
    return image::prepare(store, sources_of(offer), digest, say_progress);
}

/// One that needs what no session can be shown would have its sandboxes refused, and those of every
/// session that it might be a further language of.
void withhold_unshowable(session::ForeignKernels& kernels) {
    std::erase_if(kernels.found, [&](const session::ForeignKernel& kernel) {
        for (const sandbox::ReadOnlyPath& path : kernel.shared) {
            if (const Status shown = sandbox::check_read_only(path); shown.has_error()) {
                kernels.not_offered.push_back(
                    {kernel.name, kernel.resources + ": " + shown.error().message(), ""});
                return true;
            }
        }
        return false;
    });
}

Result<session::ForeignKernels> find_kernelspecs(
    const std::vector<std::string>& directories, const session::Installation& installation) {
    std::vector<std::string> all;
    for (const std::string& directory : directories) {
        if (directory == kAutomaticKernelspecs) {
            const auto found = kernels_directories(process_environment());
            all.insert(all.end(), found.begin(), found.end());
            continue;
        }
        std::error_code error;
        if (!std::filesystem::is_directory(directory, error)) {
            return Error(
                ErrorCode::kInvalidArgument, "foreign-kernels: there is no directory " + directory);
        }
        all.push_back(directory);
    }
    session::ForeignKernels kernels = session::find_foreign_kernels(all, installation.program_path);
    withhold_unshowable(kernels);
    if (!kernels.found.empty()) {
        BOOST_OUTCOME_TRY(session::check_foreign_bridge(installation));
    }
    return kernels;
}

/// Of this installation's languages, and of the kernelspecs whose names are not taken.
Result<session::KernelCatalog> create_catalog(
    const Offer& offer, const image::Prepared* images = nullptr) {
    BOOST_OUTCOME_TRY(
        session::KernelCatalog catalog, session::KernelCatalog::create(offer.installation, images));
    BOOST_OUTCOME_TRY(session::offer_named_environments(catalog));
    const session::KernelSpec python = *catalog.find("python");
    for (const session::ForeignKernel& kernel : offer.foreign.found) {
        if (is_taken(kernel.name, catalog)) {
            catalog.withhold({kernel.name, kernel.resources + ": the name is taken", ""});
            continue;
        }
        auto spec = session::make_foreign_spec(kernel, offer.installation, python, images);
        if (spec.has_error()) {
            catalog.withhold(
                {kernel.name,
                 kernel.resources + ": " + spec.error().message(),
                 spec.error().hint()});
        } else {
            catalog.offer(std::move(spec).value());
        }
    }
    for (const session::NotOffered& absent : offer.foreign.not_offered) {
        catalog.withhold(absent);
    }
    return catalog;
}

/// The catalog of the images; of the host's files if the operator accepts that and either wants it
/// or there can be no image.
Result<session::KernelCatalog> make_catalog(
    const Offer& offer, const std::string& choice, bool may_be_missing) {
    if (choice == kHostFiles) {
        if (!may_be_missing) {
            return Error(
                ErrorCode::kInvalidArgument,
                "image: the host's own files are no private image",
                "Accept it with --allow-degraded=private_image, or leave out --image=host.");
        }
        return create_catalog(offer);
    }
    // Says what of the installation is missing before time goes into an image of it.
    BOOST_OUTCOME_TRY(session::KernelCatalog of_host, create_catalog(offer));
    const auto images = prepare_images(offer, choice);
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
    return create_catalog(offer, &images.value());
}

Status add_kernels(const std::vector<std::string>& kernels, session::Installation& installation) {
    for (const std::string& directory : kernels) {
        std::error_code error;
        const auto real = std::filesystem::canonical(directory, error);
        if (error || !std::filesystem::is_directory(real, error)) {
            return Error(
                ErrorCode::kInvalidArgument, "kernels: there is no directory " + directory);
        }
        installation.kernel_directories.push_back(real.string());
    }
    return ok();
}

Result<Offer> find_offer(
    const std::vector<std::string>& kernels, const std::vector<std::string>& foreign_kernels) {
    Offer offer;
    BOOST_OUTCOME_TRY(offer.installation, session::find_installation());
    BOOST_OUTCOME_TRY(add_kernels(kernels, offer.installation));
    BOOST_OUTCOME_TRY(offer.foreign, find_kernelspecs(foreign_kernels, offer.installation));
    return offer;
}

Status waive_controls(
    const std::vector<std::string>& allow_degraded, session::ServiceConfig& config) {
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
    return ok();
}

std::vector<std::string> build_arguments(const ServiceRequest& request) {
    std::vector<std::string> arguments{"image", "build"};
    for (const std::string& directory : request.kernels) {
        arguments.insert(arguments.end(), {"--kernels", directory});
    }
    for (const std::string& directory : request.foreign_kernels) {
        arguments.insert(arguments.end(), {"--foreign-kernels", directory});
    }
    return arguments;
}

Result<std::optional<image::Prepared>> find_images(const Offer& offer, image::Age age) {
    BOOST_OUTCOME_TRY(image::Store store, open_images());
    return image::find_without_building(store, sources_of(offer), age, say_progress);
}

/// The catalog of the image that a build beside this process has made.
Result<session::KernelCatalog> load_catalog(const Offer& offer) {
    BOOST_OUTCOME_TRY(const auto images, find_images(offer, image::Age::kCurrent));
    if (!images) {
        return Error(ErrorCode::kNotFound, "the image that was made is none of this environment");
    }
    return create_catalog(offer, &*images);
}

/// Of the image that is there. If there is none, start tells what serves meanwhile.
Status find_catalog(
    const Offer& offer, const ServiceRequest& request, bool may_be_missing, ServiceStart& start) {
    BOOST_OUTCOME_TRY(session::KernelCatalog of_host, create_catalog(offer));
    auto found = find_images(offer, image::Age::kCurrent);
    if (found.has_error()) {
        // It would be no other error beside this process: what make_catalog() makes of it counts.
        BOOST_OUTCOME_TRY(start.config.catalog, make_catalog(offer, request.image, may_be_missing));
        return ok();
    }
    auto images = std::move(found).value();
    if (images) {
        BOOST_OUTCOME_TRY(start.config.catalog, create_catalog(offer, &*images));
        return ok();
    }
    if (image::can_mount_erofs()) {
        BOOST_OUTCOME_TRY(image::enter_own_mount_namespace());  // before there are other threads
    }
    start.load = [offer] { return load_catalog(offer); };
    start.build_arguments = build_arguments(request);
    if (may_be_missing) {
        start.of_host = of_host;
    }
    if (request.while_preparing == WhilePreparing::kStale) {
        BOOST_OUTCOME_TRY(images, find_images(offer, image::Age::kAny));
    }
    if (images) {
        BOOST_OUTCOME_TRY(start.config.catalog, create_catalog(offer, &*images));
    } else {
        start.config.preparing = request.while_preparing != WhilePreparing::kHost;
        start.config.catalog = std::move(of_host);
    }
    return ok();
}

}  // namespace

void print_not_offered(const session::KernelCatalog& catalog) {
    for (const session::NotOffered& language : catalog.not_offered()) {
        print_error(
            "cellkeep: the language " + language.language +
            " is not offered: " + describe(language) + "\n");
    }
    for (const std::string& name : catalog.languages()) {
        const session::KernelSpec& spec = *catalog.find(name);
        if (!spec.remark.empty()) {
            print_error(
                "cellkeep: the environment " + spec.environment.name + ": " + spec.remark + "\n");
        }
    }
}

Result<session::ServiceConfig> make_service_config(
    std::size_t sessions_max,
    const std::vector<std::string>& allow_degraded,
    const std::string& image,
    const std::vector<std::string>& kernels,
    const std::vector<std::string>& foreign_kernels) {
    session::ServiceConfig config;
    config.sessions_max = sessions_max;
    BOOST_OUTCOME_TRY(waive_controls(allow_degraded, config));
    BOOST_OUTCOME_TRY(const Offer offer, find_offer(kernels, foreign_kernels));
    BOOST_OUTCOME_TRY(
        config.catalog, make_catalog(offer, image, config.allow_degraded.contains(kImageControl)));
    // Ignored: leftovers of a dead server cost memory, not correctness.
    (void)sandbox::sweep_leftovers();
    return config;
}

std::shared_ptr<EnvironmentPreparation> make_preparation(
    boost::asio::io_context& io,
    const ServiceStart& start,
    std::function<void(const std::string&)> on_line,
    std::function<void(Result<session::KernelCatalog>)> on_end) {
    return EnvironmentPreparation::create(
        io,
        {.start =
             [&io, arguments = start.build_arguments](BuildProcess::Hooks hooks) {
                 return BuildProcess::start(io, own_program(), arguments, std::move(hooks));
             },
         .load = start.load,
         .on_line = std::move(on_line),
         .on_end = std::move(on_end)});
}

Error refuse_without_image(Error why) {
    return std::move(why)
        .with_context("control private_image is absent")
        .with_hint("Or accept the host's own files with --allow-degraded=private_image.");
}

Result<image::Sources> find_image_sources(
    const std::vector<std::string>& kernels, const std::vector<std::string>& foreign_kernels) {
    BOOST_OUTCOME_TRY(const Offer offer, find_offer(kernels, foreign_kernels));
    // Says what is missing of it.
    BOOST_OUTCOME_TRY(create_catalog(offer));
    return sources_of(offer);
}

Result<WhilePreparing> parse_while_preparing(const std::string& text) {
    if (text == "wait") {
        return WhilePreparing::kWait;
    }
    if (text == "stale") {
        return WhilePreparing::kStale;
    }
    if (text == "host") {
        return WhilePreparing::kHost;
    }
    return Error(
        ErrorCode::kInvalidArgument,
        "while-preparing: \"" + text + "\" is not wait, stale or host");
}

Result<ServiceStart> begin_service(const ServiceRequest& request) {
    ServiceStart start;
    BOOST_OUTCOME_TRY(waive_controls(request.allow_degraded, start.config));
    const bool may_be_missing = start.config.allow_degraded.contains(kImageControl);
    if (request.while_preparing == WhilePreparing::kHost && !may_be_missing) {
        return Error(
            ErrorCode::kInvalidArgument,
            "while-preparing: the host's own files are no private image",
            "Accept it with --allow-degraded=private_image, or choose wait or stale.");
    }
    start.config.sessions_max = request.sessions_max;
    BOOST_OUTCOME_TRY(const Offer offer, find_offer(request.kernels, request.foreign_kernels));
    if (request.image == kAutomaticImage) {
        BOOST_OUTCOME_TRY(find_catalog(offer, request, may_be_missing, start));
    } else {
        BOOST_OUTCOME_TRY(start.config.catalog, make_catalog(offer, request.image, may_be_missing));
    }
    // Ignored: leftovers of a dead server cost memory, not correctness.
    (void)sandbox::sweep_leftovers();
    return start;
}

}  // namespace cellkeep::cli
