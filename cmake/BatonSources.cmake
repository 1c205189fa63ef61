# The sources of the library, a list for each room. The library, the simulator and the fuzzers are built from
# these lists; tests/house fails if a file below src/ or include/ stands in none of them.
set(BATON_PUBLIC_HEADERS
    baton/baton.h
    baton/client.h
    baton/detail/copy_check.h
    baton/detail/duration.h
    baton/detail/forward.h
    baton/detail/handler.h
    baton/error.h
    baton/etcd_channel.h
    baton/lock.h
    baton/mutex.h
    baton/name.h
    baton/options.h
    baton/result.h
    baton/spdlog.h
    baton/testing.h
    baton/version.h)
list(TRANSFORM BATON_PUBLIC_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/)

set(BATON_BASE_SOURCES
    check.cpp
    clock.cpp
    fork_guard.cpp
    log.cpp
    secret.cpp
    sha256.cpp
    strand.cpp
    thread_loop.cpp)
set(BATON_SEAM_SOURCES lease.cpp lock_name.cpp session_opener.cpp token_base.cpp url.cpp)
set(BATON_RECIPE_SOURCES acquisition.cpp queue_rule.cpp)
# The engine drives the recipe over a session; the simulator runs it without the rest of the client.
set(BATON_ENGINE_SOURCES
    attempts.cpp
    backstop.cpp
    engine.cpp
    hold.cpp
    holds.cpp
    own_watches.cpp
    session_keeper.cpp
    withdrawals.cpp)
set(BATON_CLIENT_SOURCES
    async.cpp
    callback_thread.cpp
    client_async.cpp
    client_impl.cpp
    loss_thread.cpp
    metrics_queue.cpp)
set(BATON_ERROR_SOURCES error.cpp)
set(BATON_API_SOURCES client.cpp lock.cpp mutex.cpp)
set(BATON_CONNECT_SOURCES connect.cpp)

set(BATON_MEMORY_STORE_SOURCES session.cpp store.cpp)
set(BATON_MEMORY_SOURCES backend.cpp testing.cpp)
set(BATON_FILE_SOURCES
    backend.cpp
    client_watch.cpp
    clients.cpp
    error.cpp
    fs_check.cpp
    liveness.cpp
    lock_dir.cpp
    lock_queue.cpp
    names.cpp
    queue_file.cpp
    session.cpp
    session_admin.cpp
    store_dir.cpp
    sweep.cpp
    token_base_file.cpp
    token_counter.cpp
    watch_table.cpp)
# A cluster store has two halves: the session, which the simulator and the fuzzers run over a network of their
# own, and the half that needs the real client library.
set(BATON_ZK_SESSION_SOURCES
    inquiry.cpp
    heartbeat.cpp
    lock_list.cpp
    operator_calls.cpp
    lock_reads.cpp
    outbox.cpp
    path.cpp
    questions.cpp
    retry_timers.cpp
    silent_server_probe.cpp
    session.cpp
    standing.cpp
    status.cpp
    tickets.cpp
    token_base.cpp
    watch_sessions.cpp
    watches.cpp)
set(BATON_ZK_SOURCES acl.cpp backend.cpp client_handle.cpp log.cpp socket.cpp request_numbers.cpp)
set(BATON_ETCD_SESSION_SOURCES
    key_life.cpp
    key_loss.cpp
    lock_sequencer.cpp
    leases.cpp
    leases_beats.cpp
    link.cpp
    operator_calls.cpp
    key_slots.cpp
    own_tickets.cpp
    lock_reads.cpp
    retries.cpp
    path.cpp
    queue.cpp
    queue_reader.cpp
    session.cpp
    status.cpp
    stray_keys.cpp
    token_base.cpp
    wall_clock.cpp
    watches.cpp)
set(BATON_ETCD_SOURCES backend.cpp channels.cpp completion_loop.cpp tls.cpp)

# Full paths, so that every folder can use the lists.
set(BATON_EVERY_SOURCE ${BATON_PUBLIC_HEADERS})
foreach(
  list_and_folder
  BASE:common/base
  SEAM:common/seam
  RECIPE:common/recipe
  ENGINE:common/client
  CLIENT:common/client
  ERROR:common/api
  API:common/api
  CONNECT:connect
  MEMORY_STORE:memory
  MEMORY:memory
  FILE:file
  ZK_SESSION:zk
  ZK:zk
  ETCD_SESSION:etcd
  ETCD:etcd)
  string(REPLACE ":" ";" list_and_folder ${list_and_folder})
  list(GET list_and_folder 0 list)
  list(GET list_and_folder 1 folder)
  list(TRANSFORM BATON_${list}_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${folder}/)
  list(APPEND BATON_EVERY_SOURCE ${BATON_${list}_SOURCES})
endforeach()

set(BATON_SOURCES
    ${BATON_BASE_SOURCES}
    ${BATON_SEAM_SOURCES}
    ${BATON_RECIPE_SOURCES}
    ${BATON_ENGINE_SOURCES}
    ${BATON_CLIENT_SOURCES}
    ${BATON_ERROR_SOURCES}
    ${BATON_API_SOURCES}
    ${BATON_CONNECT_SOURCES}
    ${BATON_MEMORY_STORE_SOURCES}
    ${BATON_MEMORY_SOURCES}
    ${BATON_FILE_SOURCES})
if(BATON_HAS_ZK)
  list(APPEND BATON_SOURCES ${BATON_ZK_SESSION_SOURCES} ${BATON_ZK_SOURCES})
endif()
if(BATON_HAS_ETCD)
  list(APPEND BATON_SOURCES ${BATON_ETCD_SESSION_SOURCES} ${BATON_ETCD_SOURCES})
endif()
