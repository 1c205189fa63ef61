// Tickets: the tickets of this session. A ticket is created by a join, found again after a lost
// answer, looked at in the list of its directory, and removed by a withdrawal.
#pragma once

#include "zk/own_ticket.h"
#include "zk/lock_reads.h"
#include "zk/session_context.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace baton::zk {

// What Tickets needs of its session.
class TicketsHost {
 public:
  virtual std::int64_t session_number() const = 0;  // the owner of our nodes
  // True: our server may not have seen changes yet that other connections have reported.
  virtual bool must_sync() const = 0;
  // A ticket was added, or forgotten. any: the session has tickets.
  virtual void tickets_used(bool any) = 0;

 protected:
  ~TicketsHost() = default;
};

class Tickets {
 public:
  Tickets(const SessionContext& context, Watches& watches, TicketsHost& host);
  Tickets(const Tickets&) = delete;
  Tickets& operator=(const Tickets&) = delete;

  // As in internal::Session.
  void join(const LockName& name, Nonce nonce, Answer<Standing> answer);
  void look(const LockName& name, Nonce nonce, Answer<Standing> answer);
  void peek(const LockName& name, Answer<bool> busy);
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer);

  bool any() const noexcept { return !tickets_.empty(); }
  // Null: there is no such ticket.
  OwnTicketPtr find(Nonce nonce) const;

 private:
  struct JoinTry;
  void create(const OwnTicketPtr& ticket, int tries, Answer<Standing> answer);
  void created(const std::shared_ptr<JoinTry>& attempt, const Listing& listing);
  void make_parents(const OwnTicketPtr& ticket, int tries, Answer<Standing> answer);
  void search(const OwnTicketPtr& ticket, Answer<std::string> node);  // "": it does not exist
  void adopt(const OwnTicketPtr& ticket, const std::string& node, Answer<Standing> answer);
  void remove(const OwnTicketPtr& ticket, Answer<WithdrawResult> answer);
  void apply(const OwnTicketPtr& ticket, TicketEvent event);

  const SessionContext& context_;
  Watches& watches_;
  TicketsHost& host_;
  LockReads reads_;
  bool permanent_parents_;
  std::unordered_map<Nonce, OwnTicketPtr> tickets_;
};

}  // namespace baton::zk
