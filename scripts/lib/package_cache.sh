# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The locked environment of the index that keeps packages. To be sourced after environments.sh.

package_cache_environment="$build/environments/package-cache"
readonly package_cache_environment

make_package_cache_environment() {
    make_environment package-cache "$package_cache_environment" "$lib/package_cache/requirements.lock"
}
