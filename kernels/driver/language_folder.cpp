// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/language_folder.hpp"

#include "protocol/support/syscall.hpp"

#include <utility>

namespace cellkeep::kernels::driver {

Result<protocol::KernelJson> read_kernel_json(const std::string& folder) {
    const std::string path = folder + "/" + std::string(protocol::kKernelJsonName);
    const auto read = [&]() -> Result<protocol::KernelJson> {
        BOOST_OUTCOME_TRY(const std::string text, read_file(path, protocol::kKernelJsonBytesMax));
        return protocol::parse_kernel_json(text);
    };
    Result<protocol::KernelJson> about = read();
    if (!about) {
        return Error(ErrorCode::kInvalidArgument, path + ": " + about.error().message());
    }
    return about;
}

Result<Command> make_command(
    const protocol::KernelJson& about,
    const std::string& folder,
    std::map<std::string, std::string> values) {
    values["folder"] = folder;
    Command command;
    for (const std::string& word : about.argv) {
        BOOST_OUTCOME_TRY(std::string expanded, protocol::expand_placeholders(word, values));
        command.argv.push_back(std::move(expanded));
    }
    for (const auto& [name, value] : about.env) {
        BOOST_OUTCOME_TRY(std::string expanded, protocol::expand_placeholders(value, values));
        command.env.emplace(name, std::move(expanded));
    }
    return command;
}

}  // namespace cellkeep::kernels::driver
