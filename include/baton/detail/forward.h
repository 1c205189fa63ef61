// Names that public headers mention and never look into. Internal: no program includes this.
#pragma once

namespace baton {

class AcquireAwaitable;  // <baton/mutex.h>
class Client;            // <baton/client.h>
class EtcdChannel;       // <baton/etcd_channel.h>

namespace internal {
class ClientImpl;
class CoAttempt;
class Hold;
class LockMaker;
class MutexImpl;
}  // namespace internal

}  // namespace baton
