// SPDX-License-Identifier: Apache-2.0
//
// The session service's configuration as every command that runs sessions needs it.
#pragma once

#include "kernel-manager/cli/preparing/environment_preparation.hpp"
#include "kernel-manager/image/prepare.hpp"
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "kernel-manager/service/service.hpp"
#include "protocol/support/result.hpp"

#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cellkeep::cli {

/// What sessions see read-only: "auto", an image that is made if there is none; "host", the host's
/// own files (needs allow_degraded to have private_image); or an environment image's digest.
inline constexpr const char* kAutomaticImage = "auto";
/// The kernelspecs are where Jupyter looks for them.
inline constexpr const char* kAutomaticKernelspecs = "auto";

/// kInvalidArgument if a control name is unknown; kUnavailable if the installation is incomplete;
/// what image::prepare() fails with, unless private_image may be missing. May take a minute the
/// first time, and says so on stderr. Call it on the main thread before others exist
/// (image_mount.hpp).
/// kernels: directories of the operator's whose folders are languages (kernels/driver/README.md);
/// kInvalidArgument if there is no such directory. A language that lacks something is not offered;
/// the catalogue tells why. foreign_kernels: directories of Jupyter kernelspecs, likewise, or
/// kAutomaticKernelspecs.
Result<session::ServiceConfig> make_service_config(
    std::size_t sessions_max,
    const std::vector<std::string>& allow_degraded,
    const std::string& image = kAutomaticImage,
    const std::vector<std::string>& kernels = {},
    const std::vector<std::string>& foreign_kernels = {});

/// What sessions run from while there is no image of the environment as it is now.
enum class WhilePreparing {
    kWait,   // nothing: a session waits, and is refused if that takes long
    kStale,  // the newest image of an older state of the same environment; nothing if there is none
    kHost,   // the host's own files; needs allow_degraded to have private_image
};
/// "wait", "stale", "host".
Result<WhilePreparing> parse_while_preparing(const std::string& text);

struct ServiceRequest {
    std::size_t sessions_max = 1;
    std::vector<std::string> allow_degraded;
    std::string image = kAutomaticImage;
    std::vector<std::string> kernels;
    std::vector<std::string> foreign_kernels;
    WhilePreparing while_preparing = WhilePreparing::kWait;
};

/// A service that can begin at once.
struct ServiceStart {
    session::ServiceConfig config;  // preparing: until the image is loaded, there are no sessions
    /// Set if the image is still to be made: how to load the catalog when it is. For any thread.
    std::function<Result<session::KernelCatalog>()> load;
    /// The command line that makes the image: of this program, without its name.
    std::vector<std::string> build_arguments;
    /// What serves if the image cannot be made, because private_image may be missing.
    std::optional<session::KernelCatalog> of_host;
};

/// As make_service_config(), but makes no image of the environment, which takes minutes: it says
/// how that is to be made beside.
Result<ServiceStart> begin_service(const ServiceRequest& request);

/// Has the image made that `start` lacks, by a process of its own; what comes of it goes to the
/// hooks of EnvironmentPreparation. Precondition: start.load is set.
std::shared_ptr<EnvironmentPreparation> make_preparation(
    boost::asio::io_context& io,
    const ServiceStart& start,
    std::function<void(const std::string&)> on_line,
    std::function<void(Result<session::KernelCatalog>)> on_end);

/// Why a program cannot go on whose image cannot be made, if nothing else was accepted.
Error refuse_without_image(Error why);

/// What an image of this installation, with these languages besides, is made of.
Result<image::Sources> find_image_sources(
    const std::vector<std::string>& kernels, const std::vector<std::string>& foreign_kernels);

/// One line on stderr for each language that is not offered: why, and what gives it; and for each
/// environment with a remark.
void print_not_offered(const session::KernelCatalog& catalog);

}  // namespace cellkeep::cli
