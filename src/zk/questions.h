// Questions: the questions of operators and holders that wait for an answer. A question may take
// several requests. It ends when its caller stops waiting.
#pragma once

#include "zk/inquiry.h"
#include "zk/session_context.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

namespace baton::zk {

class Question {
 public:
  // Sends a request. After the end of the question it is neither sent nor answered.
  void ask(Request request, Outbox::Answer answer);

 private:
  friend class Questions;
  std::weak_ptr<Inquiry> inquiry_;  // expired: the caller was answered
};

class Questions {
 public:
  explicit Questions(const SessionContext& context) : context_(context) {}
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;

  // Starts a question. Q is derived from Question and has a member `answer`, which gets an error
  // when the time is over. until: the caller's deadline; kNever: it has none, so the limit is
  // SessionParts::patience. what: the call, for that error.
  template <class Q>
  void begin(const std::shared_ptr<Q>& question, Time until, const std::string& what) {
    // NOLINTNEXTLINE(performance-unnecessary-value-param): moved into an answer of any type
    start(question, until, what, [question](Error late) { question->answer(std::move(late)); });
  }
  // Ends the question and answers its caller, unless the question has ended before.
  template <class Q, class T>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved into an answer of any type
  void settle(const std::shared_ptr<Q>& question, T result) {
    if (finish(*question)) question->answer(std::move(result));
  }
  // An answer of the server was lost: repeats a step of the question while its caller waits.
  void repeat(std::shared_ptr<Question> question, Task step);
  // The session has ended: no caller is answered after this.
  void end();

 private:
  void start(std::shared_ptr<Question> question, Time deadline, const std::string& what,
             UniqueFunction<void(Error)> fail);
  bool finish(Question& question);

  const SessionContext& context_;
  std::set<std::shared_ptr<Inquiry>> inquiries_;
};

}  // namespace baton::zk
