# Targets `warpset::warpset`, a shared library, and `warpset::static`.
get_filename_component(warpset_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET warpset::warpset)
    add_library(warpset::warpset SHARED IMPORTED)
    set_target_properties(warpset::warpset PROPERTIES
        IMPORTED_LOCATION "${warpset_prefix}/lib/libwarpset.so"
        INTERFACE_INCLUDE_DIRECTORIES "${warpset_prefix}/include")

    add_library(warpset::static STATIC IMPORTED)
    set_target_properties(warpset::static PROPERTIES
        IMPORTED_LOCATION "${warpset_prefix}/lib/libwarpset.a"
        INTERFACE_INCLUDE_DIRECTORIES "${warpset_prefix}/include"
        INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl")
endif()
