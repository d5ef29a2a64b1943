// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep doctor`: what the sandbox could apply on this host, control by control.
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/console.hpp"
#include "kernel-manager/cli/doctor_report.hpp"
#include "sandbox/host_features.hpp"

namespace cellkeep::cli {

int doctor(DoctorFormat format) {
    const sandbox::HostFeatures host = sandbox::probe_host();
    print(format == DoctorFormat::kJson ? doctor_json(host) : doctor_table(host));
    return sandbox::IsolationReport{host.controls}.complete() ? kExitDone : kExitFailed;
}

}  // namespace cellkeep::cli
