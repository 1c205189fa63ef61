#include "zk/client_handle.h"

#include "common/base/mutex.h"
#include "common/base/signal_shield.h"
#include "zk/acl.h"
#include "zk/socket.h"
#include "zk/log.h"
#include "zk/request_numbers.h"

#include <zookeeper/zookeeper.h>

#include <cerrno>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

// Exists only in builds of the C client with TLS; Debian's build has none.
extern "C" __attribute__((weak)) zhandle_t* zookeeper_init_ssl(const char* host, const char* cert,
                                                               watcher_fn fn, int recv_timeout,
                                                               const clientid_t* clientid,
                                                               void* context, int flags);

namespace baton::zk {

namespace {

template <class F>
void run_apart(F body) {
  const SignalShield shield;
  std::thread(std::move(body)).detach();
}

// One request under way at the C client.
struct Question {
  std::uint64_t id;
  void* core;
};

// One message from the C client's threads. Messages are handled in order.
struct Item {
  enum class Kind { answer, session, news, opened } kind;
  std::uint64_t question = 0;
  Reply reply;
  int state = 0;
  Connection connection;
  std::string path;
  zhandle_t* handle = nullptr;
};

void copy_stat(const Stat* stat, Reply& reply) {
  if (stat == nullptr) return;
  reply.created_at = static_cast<std::uint64_t>(stat->czxid);
  reply.ctime_ms = stat->ctime;
  reply.owner = stat->ephemeralOwner;
}

}  // namespace

// Shared by the strand, the C client's threads, and the threads that open and close the handle. The
// C client has its address, so it lives until zookeeper_close has returned.
struct ClientHandle::Core : std::enable_shared_from_this<Core> {
  explicit Core(const Address& to)
      : address(to), acl(!to.user.empty(), to.read_group), authenticated(to.user.empty()) {}

  Mutex mutex;
  Loop* loop BATON_GUARDED_BY(mutex) = nullptr;     // null after the ClientHandle was destroyed
  std::vector<Item> inbox BATON_GUARDED_BY(mutex);  // drain() is posted when the first item comes

  // The members below are used only on the strand.
  const Address address;
  const Acl acl;
  TransportListener* listener = nullptr;
  zhandle_t* handle = nullptr;
  bool connected = false;
  bool told_connected = false;
  bool authenticated = false;  // true also without a user
  bool ended = false;
  Task closed;
  Connection connection;
  std::uint64_t next_question = 1;
  struct Asked {
    std::unique_ptr<Question> tag;  // the C client has its address
    ReplyHandler answer;
  };
  std::unordered_map<std::uint64_t, Asked> asked;

  // ---- on the C client's threads: only copy and enqueue

  // False: the ClientHandle was destroyed.
  bool put(Item item) noexcept {
    const MutexLock guard(mutex);
    if (loop == nullptr) return false;
    const bool wake = inbox.empty();
    inbox.push_back(std::move(item));
    if (wake) loop->post([self = shared_from_this()] { self->drain(); });
    return true;
  }

  static void on_event(zhandle_t* zh, int type, int state, const char* path,
                       void* context) noexcept {
    auto* const core = static_cast<Core*>(context);
    Item item{Item::Kind::session, 0, {}, state, {}, {}, nullptr};
    if (type == ZOO_SESSION_EVENT) {
      if (state == ZOO_CONNECTED_STATE) {
        item.connection.session = zoo_client_id(zh)->client_id;
        item.connection.timeout = std::chrono::milliseconds(zoo_recv_timeout(zh));
        sockaddr_storage peer{};
        socklen_t length = sizeof peer;
        if (zookeeper_get_connected_host(zh, reinterpret_cast<sockaddr*>(&peer), &length)) {
          item.connection.endpoint = peer_text(peer);
          mark_close_on_exec(peer);
        }
      }
      core->put(std::move(item));
      return;
    }
    if (type != ZOO_DELETED_EVENT && type != ZOO_CHANGED_EVENT) return;
    item.kind = Item::Kind::news;
    item.state = type;
    item.path = path == nullptr ? "" : path;
    core->put(std::move(item));
  }

  static void answer(const void* data, int code, Reply reply) noexcept {
    const auto* const question = static_cast<const Question*>(data);
    reply.code = code;
    reply.status = status_of(code);
    // A server may answer this just before it ends the session. Only the session event counts as
    // the end.
    if (reply.status == Status::expired) reply.status = Status::lost;
    Item item{Item::Kind::answer, question->id, std::move(reply), 0, {}, {}, nullptr};
    static_cast<Core*>(question->core)->put(std::move(item));
  }
  static void on_created(int code, const char* name, const Stat* stat, const void* data) noexcept {
    Reply reply;
    if (name != nullptr) reply.path = name;
    copy_stat(stat, reply);
    answer(data, code, std::move(reply));
  }
  static void on_done(int code, const void* data) noexcept { answer(data, code, {}); }
  static void on_text(int code, const char*, const void* data) noexcept { answer(data, code, {}); }
  static void on_children(int code, const String_vector* strings, const void* data) noexcept {
    Reply reply;
    if (strings != nullptr) {
      reply.children.assign(strings->data, strings->data + strings->count);
    }
    answer(data, code, std::move(reply));
  }
  static void on_data(int code, const char* value, int length, const Stat* stat,
                      const void* data) noexcept {
    Reply reply;
    if (value != nullptr && length > 0) reply.data.assign(value, static_cast<std::size_t>(length));
    copy_stat(stat, reply);
    answer(data, code, std::move(reply));
  }
  // Does nothing: it may run with the C client's lock held, and a refusal also comes as a session
  // event.
  static void on_auth(int, const void*) noexcept {}

  // ---- on the strand

  void drain() {
    std::vector<Item> items;
    {
      const MutexLock guard(mutex);
      items.swap(inbox);
    }
    for (auto& item : items) {
      if (listener != nullptr) {
        take(item);
      } else if (item.kind == Item::Kind::opened && item.handle != nullptr) {
        reap_apart(shared_from_this(), item.handle);  // the ClientHandle was destroyed
      }
    }
  }

  void take(Item& item) {
    switch (item.kind) {
      case Item::Kind::answer: {
        auto found = asked.extract(item.question);
        if (!found.empty() && found.mapped().answer) found.mapped().answer(item.reply);
        return;
      }
      case Item::Kind::news:
        if (!ended) {
          listener->transport_event(
              item.state == ZOO_DELETED_EVENT ? NodeEvent::gone : NodeEvent::changed, item.path);
        }
        return;
      case Item::Kind::opened:
        handle = item.handle;
        if (handle == nullptr) {
          end(Status::lost, item.path);
        } else {
          say_connected();
        }
        return;
      case Item::Kind::session:
        session_event(item);
        return;
    }
  }

  void session_event(Item& item) {
    if (ended) return;
    if (item.state == ZOO_CONNECTED_STATE) {
      connected = true;
      connection = item.connection;
      say_connected();
    } else if (item.state == ZOO_EXPIRED_SESSION_STATE) {
      end(Status::expired, "");
    } else if (item.state == ZOO_AUTH_FAILED_STATE) {
      end(Status::auth_failed, "");
    } else if (std::exchange(connected, false) && std::exchange(told_connected, false)) {
      listener->transport_disconnected();
    }
  }

  void say_connected() {
    if (ended || !connected || handle == nullptr || told_connected) return;
    if (!authenticated) {
      // Not earlier: after a failed attempt to connect, the C client forgets the credentials. Here
      // no request is queued yet, so the credentials are sent first. The C client sends them again
      // after every reconnect.
      const std::string who = address.user + ":" + address.password;
      const int code = zoo_add_auth(handle, "digest", who.data(), static_cast<int>(who.size()),
                                    &on_auth, nullptr);
      if (code != ZOK) return;  // disconnected again: retry with the next connection
      authenticated = true;
    }
    told_connected = true;
    listener->transport_connected(connection);
  }

  void end(Status why, const std::string& detail) {
    if (std::exchange(ended, true)) return;
    listener->transport_ended(why, detail);
  }

  // ---- on separate threads, with all signals blocked

  void open() noexcept {
    const int timeout = static_cast<int>(address.timeout.count());
    zhandle_t* zh = nullptr;
    const NewPipes pipes;
    if (!address.tls.ca_file.empty()) {
      const std::string files =
          address.tls.ca_file + "," + address.tls.cert_file + "," + address.tls.key_file + ",";
      zh = zookeeper_init_ssl(address.hosts.c_str(), files.c_str(), &on_event, timeout, nullptr,
                              this, ZOO_NO_LOG_CLIENTENV);
    } else {
      zh = zookeeper_init2(address.hosts.c_str(), &on_event, timeout, nullptr, this,
                           ZOO_NO_LOG_CLIENTENV, &on_client_log);
    }
    if (zh != nullptr) {
      pipes.mark();
      // Without this the C client resolves names before every poll. It still does after a lost
      // connection.
      zoo_set_servers_resolution_delay(zh, -1);
    }
    const int error = zh == nullptr ? errno : 0;
    Item item{Item::Kind::opened, 0, {}, 0, {}, {}, zh};
    if (error != 0) item.path = std::generic_category().message(error);
    if (!put(std::move(item)) && zh != nullptr) zookeeper_close(zh);
  }

  static void reap_apart(const std::shared_ptr<Core>& core, zhandle_t* zh);

  // Takes seconds if the server is silent. After it the C client makes no more callbacks.
  void reap(zhandle_t* zh) noexcept {
    zookeeper_close(zh);
    const MutexLock guard(mutex);
    if (loop == nullptr) return;
    loop->post([self = shared_from_this()] {
      if (self->listener != nullptr && self->closed) std::exchange(self->closed, nullptr)();
    });
  }
};

void ClientHandle::Core::reap_apart(const std::shared_ptr<Core>& core, zhandle_t* zh) {
  try {
    run_apart([core, zh] { core->reap(zh); });
  } catch (const std::system_error&) {
    core->reap(zh);  // no thread available: slow, but nothing leaks
  }
}

bool ClientHandle::has_tls() noexcept { return &zookeeper_init_ssl != nullptr; }

ClientHandle::ClientHandle(Loop& loop, const Address& address, TransportListener& listener)
    : core_(std::make_shared<Core>(address)) {
  core_->loop = &loop;
  core_->listener = &listener;
  run_apart([core = core_] { core->open(); });
}

ClientHandle::~ClientHandle() {
  core_->listener = nullptr;
  zhandle_t* zh = std::exchange(core_->handle, nullptr);
  {
    const MutexLock guard(core_->mutex);
    core_->loop = nullptr;
    for (const Item& item : core_->inbox) {
      if (item.kind == Item::Kind::opened && item.handle != nullptr) zh = item.handle;
    }
    core_->inbox.clear();  // a drain already posted finds nothing
  }
  core_->closed = nullptr;
  // Release the answer handlers now. The tags stay, because the C client uses them until it has
  // closed.
  for (auto& [id, question] : core_->asked) question.answer = nullptr;
  if (zh != nullptr) Core::reap_apart(core_, zh);
}

bool ClientHandle::provably_disconnected() const noexcept {
  if (core_->handle == nullptr) return false;  // not known
  // The C client's thread writes this state shortly after it has sent the first bytes. The caller
  // must see the same result for a while before it relies on it.
  const int state = zoo_state(core_->handle);
  return state == 0 || state == ZOO_CONNECTING_STATE || state == ZOO_NOTCONNECTED_STATE;
}

void ClientHandle::close(Task closed) {
  zhandle_t* const zh = std::exchange(core_->handle, nullptr);
  core_->closed = std::move(closed);
  // Without a handle it was never opened, or is already closing: there is no session to close.
  if (zh != nullptr) Core::reap_apart(core_, zh);
}

void ClientHandle::send(const Request& request, ReplyHandler answer) {
  Core& core = *core_;
  zhandle_t* const zh = core.handle;
  const std::uint64_t id = core.next_question++;
  auto& asked = core.asked[id];
  asked.tag = std::make_unique<Question>(Question{id, &core});
  asked.answer = std::move(answer);
  const void* const tag = asked.tag.get();
  const char* const path = request.path.c_str();
  int code = ZINVALIDSTATE;
  const auto create = [&](int mode) {
    return zoo_acreate2(zh, path, request.data.data(), static_cast<int>(request.data.size()),
                        core.acl.get(), mode, &Core::on_created, tag);
  };
  if (zh != nullptr && core.connected) {
    skip_bad_request_numbers(zh);
    switch (request.kind) {
      case Request::Kind::create_entry:
        code = create(ZOO_EPHEMERAL_SEQUENTIAL);
        break;
      case Request::Kind::create_container:
        code = create(ZOO_CONTAINER);
        break;
      case Request::Kind::create_permanent:
        code = create(ZOO_PERSISTENT);
        break;
      case Request::Kind::remove:
        code = zoo_adelete(zh, path, -1, &Core::on_done, tag);
        break;
      case Request::Kind::children:
        code = zoo_aget_children(zh, path, 0, &Core::on_children, tag);
        break;
      case Request::Kind::get:
        code = zoo_aget(zh, path, 0, &Core::on_data, tag);
        break;
      case Request::Kind::get_watch:
        // All watches use the same function and context: many different ones cost the C client
        // quadratic time.
        code = zoo_awget(zh, path, &Core::on_event, &core, &Core::on_data, tag);
        break;
      case Request::Kind::unwatch:
        // The header declares a pointer to a function pointer, but the C client expects the
        // function.
        code = zoo_aremove_all_watches(zh, path, ZWATCHTYPE_DATA, 0,
                                       reinterpret_cast<void_completion_t*>(&Core::on_done), tag);
        break;
      case Request::Kind::sync:
        code = zoo_async(zh, path, &Core::on_text, tag);
        break;
    }
  }
  if (code == ZOK) return;
  // The C client refused the request and will not call back. Put the answer into the inbox, behind
  // the messages of its threads. If the session has ended, that event is under way; nothing should
  // be sent until it comes.
  if (code == ZINVALIDSTATE) {
    core.put({Item::Kind::session, 0, {}, ZOO_NOTCONNECTED_STATE, {}, {}, nullptr});
  }
  Reply reply;
  reply.code = code;
  reply.status = status_of(code);
  core.put({Item::Kind::answer, id, std::move(reply), 0, {}, {}, nullptr});
}

}  // namespace baton::zk
