# SPDX-License-Identifier: Apache-2.0
# A package brings the libraries that a minimal Debian lacks, in PREFIX/lib/cellkeep/shared. The target, in
# PREFIX/bin, looks there first; where the folder is missing, as in a build tree, the system's are used. DT_RPATH and
# not DT_RUNPATH, because the libraries that these libraries need are found by it, too.
function(cellkeep_use_shared_libraries target)
    set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH "$ORIGIN/../lib/cellkeep/shared")
    target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endfunction()
