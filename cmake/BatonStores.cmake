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

# gRPC's own CMake package wants its code generator, which we do not use; pkg-config does not.
set(BATON_HAS_ETCD OFF)
if(BATON_WITH_ETCD)
  find_package(PkgConfig QUIET)
  find_package(Protobuf QUIET)
  find_package(OpenSSL QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(BATON_GRPC QUIET IMPORTED_TARGET grpc++)
  endif()
  if(Protobuf_FOUND AND TARGET protobuf::protoc AND BATON_GRPC_FOUND AND OpenSSL_FOUND)
    set(BATON_HAS_ETCD ON)
    # The messages: our own .proto, with protobuf's small runtime.
    set(wire ${PROJECT_BINARY_DIR}/generated/etcd/baton_etcd_wire.pb)
    set(proto ${PROJECT_SOURCE_DIR}/src/etcd/baton_etcd_wire.proto)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated/etcd)
    add_custom_command(
      OUTPUT ${wire}.h ${wire}.cc
      COMMAND protobuf::protoc --cpp_out=${PROJECT_BINARY_DIR}/generated/etcd
              -I ${PROJECT_SOURCE_DIR}/src/etcd ${proto}
      DEPENDS ${proto}
      VERBATIM)
    add_library(baton_etcd_wire OBJECT ${wire}.cc ${wire}.h)
    target_include_directories(baton_etcd_wire SYSTEM PUBLIC ${PROJECT_BINARY_DIR}/generated)
    target_link_libraries(baton_etcd_wire PUBLIC protobuf::libprotobuf-lite)
    add_library(baton_etcd_client INTERFACE)
    target_include_directories(baton_etcd_client SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/generated)
    target_compile_definitions(baton_etcd_client INTERFACE BATON_WITH_ETCD)
    target_link_libraries(baton_etcd_client INTERFACE PkgConfig::BATON_GRPC
                                                      protobuf::libprotobuf-lite OpenSSL::SSL
                                                      OpenSSL::Crypto)
  elseif(NOT BATON_WITH_ETCD STREQUAL "AUTO")
    message(FATAL_ERROR "BATON_WITH_ETCD needs gRPC, protobuf and OpenSSL (Debian: libgrpc++-dev, "
                        "libprotobuf-dev, protobuf-compiler, libssl-dev, pkg-config)")
  endif()
endif()
message(STATUS "etcd store: ${BATON_HAS_ETCD}")
