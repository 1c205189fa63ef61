#include "guardian_link.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "errors.h"

namespace baton::cli {

LinkPair make_links() {
  int ends[2];
  // SEQPACKET delivers whole messages, and an end of file when the other process has ended.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    throw os_failure("run: cannot make a socket pair", errno);
  }
  return {Link(Fd(ends[0])), Link(Fd(ends[1]))};
}

bool Link::send(const Message& message, int descriptor) noexcept {
  iovec part{const_cast<Message*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  ssize_t n = 0;
  do {
    n = sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(sizeof message);
}

Link::Got Link::receive(Message& message, Fd* descriptor) noexcept {
  iovec part{&message, sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
    // ECONNRESET comes once, before messages that the other side sent in time. So read again.
  } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
  if (n < 0) return errno == EAGAIN ? Got::nothing : Got::closed;
  // The descriptor was not delivered (too many open files). Without it the lock could be free
  // before the job ends, so treat the link as closed.
  if ((header.msg_flags & MSG_CTRUNC) != 0) return Got::closed;
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(rights), sizeof received);
    Fd owned(received);
    if (descriptor != nullptr) *descriptor = std::move(owned);
  }
  return n == static_cast<ssize_t>(sizeof message) ? Got::message : Got::closed;
}

}  // namespace baton::cli
