// SPDX-License-Identifier: Apache-2.0
//
// What is noted of a named environment, as NAME.json. Values.
#pragma once

#include "kernel-manager/environments/debian/debian_record.hpp"
#include "protocol/support/result.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::environments {

inline constexpr std::size_t kNamedRecordBytesMax = 2UL << 20U;

/// Of an environment's packages of Node.js, if it has any.
struct NodeRecord {
    std::map<std::string, std::string> wanted;    // what was asked for: ranges by name
    std::map<std::string, std::string> packages;  // what is there: versions by place
    std::string registry;                         // as it may be shown
    bool locked = false;                          // made of a package-lock.json
};

struct NamedRecord {
    std::string name;
    std::string digest;  // of its files: the image that it is
    std::string python;  // "3.11" of Debian's, or "3.12.1" of one that it brings
    std::string index;   // as it may be shown
    std::uint64_t bytes = 0;
    std::string created_at;                       // ISO 8601
    std::vector<std::string> requirements;        // what was asked for
    std::map<std::string, std::string> packages;  // what is there: versions by name
    std::vector<std::string> built;               // names of those that were built from source
    bool locked = false;                          // made of a lock (lock_file.hpp)
    std::string asked_python;                     // as EnvironmentOrder::python; "": not noted
    NodeRecord node;
    DebianRecord debian;

    std::string to_json() const;
    /// kProtocol if it is none of to_json()'s.
    static Result<NamedRecord> parse(std::string_view json);
};

}  // namespace cellkeep::environments
