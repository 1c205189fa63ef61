// Checks that the histories can be judged.
#include "chaos/cluster/holds.h"

namespace baton::chaos {
namespace {

void check_files(Bench& bench) {
  for (const Damage& damage : bench.options.damage) {
    bench.judged(Checker::form);
    if (damage.cut_off && bench.index.life(damage.client).killed) continue;
    // The process was killed before its first complete record, so its number is not known.
    if (damage.cut_off && damage.client == 0 && damage.line == 1) continue;
    bench.object(
        Checker::form, bench.index.end,
        damage.file + ": line " + std::to_string(damage.line) +
            (damage.cut_off ? " is cut off, and its process was not killed" : " is no record"));
  }
}

void check_calls(Bench& bench) {
  const Index& index = bench.index;
  for (const Hold& hold : index.holds) {
    bench.judged(Checker::form);
    const auto object = [&](Time at, const char* words) {
      bench.object(Checker::form, at, index.who(hold) + words);
    };
    if (!hold.asked) {
      object(index.begin, " was never asked for");
      continue;
    }
    const auto after = [&](Moment late, Moment early, const char* words) {
      if (late && (!early || *late < *early)) object(*late, words);
    };
    after(hold.granted, hold.asked, " was granted before it was asked for");
    after(hold.gave_up, hold.asked, " was given up before it was asked for");
    after(hold.first_valid, hold.granted, " was valid before it was granted");
    after(hold.released, hold.release, " was released before anybody released it");
    if (hold.granted && hold.gave_up) object(*hold.gave_up, " was both granted and given up");
    if (hold.granted && hold.token == 0) object(*hold.granted, " has no token");
    if (hold.last_valid && hold.release && *hold.last_valid > *hold.release) {
      object(*hold.last_valid, " was valid after its release");
    }
  }
}

}  // namespace

void check_form(Bench& bench) {
  const Index& index = bench.index;
  check_files(bench);
  check_calls(bench);
  if (bench.verdict.grants == 0) bench.object(Checker::form, index.end, "nothing was ever granted");
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Hold*> holds;
  for (const Hold& hold : index.holds) holds[{hold.client, hold.op}] = &hold;
  for (const Record& record : bench.records) {
    if (record.client == 0) continue;
    const auto found = holds.find({record.client, record.op});
    if (found != holds.end() && (record.lock != found->second->lock ||
                                 (record.token != 0 && record.token != found->second->token))) {
      bench.object(Checker::form, record.at,
                   "a record " + std::string(name_of(record.kind)) + " of " +
                       index.who(*found->second) + " has lock " + std::to_string(record.lock) +
                       " and token " + std::to_string(record.token));
    }
    const Life& life = index.life(record.client);
    if ((life.stop && record.at > *life.stop) || (life.killed && record.at > *life.killed)) {
      bench.object(Checker::form, record.at,
                   "client " + std::to_string(record.client) + " has a record " +
                       std::string(name_of(record.kind)) + " after its end");
    }
  }
}

}  // namespace baton::chaos
