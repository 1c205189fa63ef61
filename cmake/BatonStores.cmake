# Which cluster stores are built, and with what.

# The ZooKeeper C client ships neither a CMake package nor a pkg-config file.
set(BATON_HAS_ZK OFF)
if(BATON_WITH_ZK)
  find_path(BATON_ZK_INCLUDE zookeeper/zookeeper.h)
  find_library(BATON_ZK_LIBRARY zookeeper_mt)
  if(BATON_ZK_INCLUDE AND BATON_ZK_LIBRARY)
    set(BATON_HAS_ZK ON)
    add_library(baton_zk_client INTERFACE)
    target_include_directories(baton_zk_client SYSTEM INTERFACE ${BATON_ZK_INCLUDE})
    target_compile_definitions(baton_zk_client INTERFACE THREADED BATON_WITH_ZK)
  elseif(NOT BATON_WITH_ZK STREQUAL "AUTO")
    message(FATAL_ERROR "BATON_WITH_ZK needs the ZooKeeper C client (Debian: libzookeeper-mt-dev)")
  endif()
endif()
message(STATUS "ZooKeeper store: ${BATON_HAS_ZK}")
