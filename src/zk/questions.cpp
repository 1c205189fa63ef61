#include "zk/questions.h"

#include <utility>

namespace baton::zk {

void Question::ask(Request request, Outbox::Answer answer) {
  if (const auto open = inquiry_.lock()) open->ask(std::move(request), std::move(answer));
}

void Questions::start(std::shared_ptr<Question> question, Time deadline, const std::string& what,
                      UniqueFunction<void(Error)> fail) {
  Loop& loop = *context_.parts.loop;
  const bool limited = deadline != kNever;
  const Time until = limited ? deadline : loop.now() + Nanos(context_.parts.patience);
  // If the caller has a deadline, reaching it is a timeout. Otherwise our own limit means that no
  // server answers.
  const Errc late = limited ? Errc::timeout : Errc::connection_failed;
  Question& started = *question;
  auto inquiry = Inquiry::begin(
      loop, context_.outbox, until,
      [this, question = std::move(question), what, late, fail = std::move(fail)]() mutable {
        inquiries_.erase(question->inquiry_.lock());
        fail(Error(late, what + ": no server answered in time; check the connection and retry"));
      });
  started.inquiry_ = inquiry;
  inquiries_.insert(std::move(inquiry));
}

bool Questions::finish(Question& question) {
  const auto inquiry = question.inquiry_.lock();
  if (inquiry == nullptr || !inquiry->finish()) return false;
  inquiries_.erase(inquiry);
  return true;
}

void Questions::repeat(std::shared_ptr<Question> question, Task step) {
  context_.retries.retry_later([question = std::move(question), step = std::move(step)]() mutable {
    const auto inquiry = question->inquiry_.lock();
    if (inquiry != nullptr && inquiry->wanted()) step();
  });
}

void Questions::end() {
  for (const auto& inquiry : std::exchange(inquiries_, {})) inquiry->finish();
}

}  // namespace baton::zk
