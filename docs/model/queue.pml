/* The queue recipe as baton does it, for spin. README.md beside this file says which function each
 * step stands for, what is left out, and how to run it. One lock; the store is one process that
 * keeps its contract; what may fail is the network, the clients and the patience of callers. */

#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef ACQUIRES /* in all, taken by whichever client likes */
#define ACQUIRES 3
#endif
#ifndef EXPIRIES /* how often a client's deadline may pass */
#define EXPIRIES 1
#endif
#ifndef LOSSES /* answers, requests and events that may be lost or doubled */
#define LOSSES 1
#endif
#ifndef EVICTIONS /* of waiters: an operator who evicts a holder is outside of the promise (A3) */
#define EVICTIONS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif

#define NONCES 7 /* of one client, numbered from 1: one for each acquire, one more for each join again */
#define PLACES 6 /* in the queue; both are asserted to be enough */
#define BIT(n) (1 << (n))
#define TICKET(c, n) ((c) * 8 + (n)) /* never 0, as nonces begin at 1 */
#define MINE(c) TICKET(c, nonce[c])
#define CLIENT(t) ((t) / 8)
#define NONCE(t) ((t) % 8)
#define THERE(t) (queue[0] == (t) || queue[1] == (t) || queue[2] == (t) || queue[3] == (t) || queue[4] == (t) || queue[5] == (t))

mtype:state = { idle, joining, looking, paused, setting, waiting, holding };
mtype:answer = { none, missing, first, behind };
mtype:event = { quiet, gone, look };

/* ---- the store */
byte queue[PLACES]; /* tickets in the order in which they joined, 0 beyond the last */
byte length;

/* ---- the clients */
mtype:state st[CLIENTS] = idle;
byte nonce[CLIENTS];             /* of the attempt or hold of now */
byte next_nonce[CLIENTS] = 1;
byte born[CLIENTS] = 1;          /* the first nonce of this session: lower ones are of sessions before */
bool lease_ok[CLIENTS] = true;   /* the client's own deadline lies ahead */
bool expired[CLIENTS];           /* the store has ended the session, the client does not know */
bool lost[CLIENTS];              /* the deadline has passed since the hold began */
bool patient[CLIENTS];           /* this attempt never gives up */
byte flying[CLIENTS];           /* joins under way to the store, by nonce */
byte leaving[CLIENTS];          /* tickets being withdrawn, by nonce */
mtype:answer answer[CLIENTS] = none;
byte pred[CLIENTS];              /* the predecessor that was read */
bool more[CLIENTS];              /* and there was another ticket ahead of it */
mtype:event event[CLIENTS] = quiet; /* of the watch on the predecessor */
bool deaf[CLIENTS];              /* no event will come */
#if EVICTIONS > 0
bool moved[CLIENTS];             /* the ticket that was read was evicted; a copy of its join may make another */
#define MOVED(c) moved[c]
#else
#define MOVED(c) false
#endif

/* ---- what is left to happen */
byte acquires = ACQUIRES;
byte expiries = EXPIRIES;
byte losses = LOSSES;
byte evictions = EVICTIONS;
byte crashes = CRASHES;

/* ---- what is checked */
bool exclusion = true; /* no two clients believe validly at once */
bool no_orphan = true; /* when all is quiet, every ticket has a waiter or holder that lives */
bool progress = true;  /* when all is quiet, no client still waits */

hidden byte i, j, k, at; /* scratch, for steps that cannot be interrupted */

#define WAITS(c) (st[c] == joining || st[c] == looking || st[c] == paused || st[c] == setting || st[c] == waiting)
#define VALID(c) (st[c] == holding && lease_ok[c] && !lost[c])

/* at = position of ticket t, or length */
inline find(t) {
  at = 0;
  do
  :: at < length && queue[at] != (t) -> at++
  :: else -> break
  od
}

/* What a join or look of client c reads: my standing, and whom to watch. */
inline read_line(c) {
#if EVICTIONS > 0
  moved[c] = false;
#endif
  find(MINE(c));
  if
  :: at == length -> answer[c] = missing; pred[c] = 0; more[c] = false
  :: at < length && at == 0 -> answer[c] = first; pred[c] = 0; more[c] = false
  :: at < length && at > 0 -> answer[c] = behind; pred[c] = queue[at - 1]; more[c] = (at > 1)
  fi
}

/* Takes ticket t out, if it is there, and tells who watches it. The watch of one's own ticket comes
 * first: who has lost it is told to look, not that the predecessor has gone. */
inline take_out(t) {
  find(t);
  if
  :: at < length ->
     length--;
     do
     :: at < length -> queue[at] = queue[at + 1]; at++
     :: else -> queue[length] = 0; break
     od;
     j = 0;
     do
     :: j < CLIENTS ->
        if
        :: st[j] == waiting && !deaf[j] && event[j] == quiet && pred[j] == (t) ->
           find(MINE(j));
           if
           :: at < length && !MOVED(j) -> event[j] = gone
           :: else -> event[j] = look
           fi
        :: else
        fi;
        j++
     :: else -> break
     od
  :: else
  fi
}

/* The store ends a session: tickets with nonces from `low` up to, not with, `high` go at once. */
inline take_out_all(c, low, high) {
  i = 0;
  do
  :: i < length ->
     if
     :: CLIENT(queue[i]) == c && NONCE(queue[i]) >= low && NONCE(queue[i]) < high ->
        k = queue[i]; take_out(k)
     :: else -> i++
     fi
  :: else -> break
  od;
  i = 0 /* a d_step may not end with a break */
}

inline forget_standing(c) {
  answer[c] = none; pred[c] = 0; more[c] = false; event[c] = quiet; deaf[c] = false;
#if EVICTIONS > 0
  moved[c] = false
#endif
}

inline ends(c) { st[c] = idle; nonce[c] = 0; lost[c] = false; patient[c] = false; forget_standing(c) }

inline joins(c) {
  nonce[c] = next_nonce[c];
  next_nonce[c]++;
  assert(nonce[c] <= NONCES);
  flying[c] = flying[c] | BIT(nonce[c]);
  forget_standing(c);
  st[c] = joining
}

inline looks(c) { forget_standing(c); st[c] = looking }

inline grant(c) {
  forget_standing(c);
  st[c] = holding;
  lost[c] = false;
  j = 0;
  do
  :: j < CLIENTS ->
     if
     :: j != c && VALID(j) && VALID(c) -> exclusion = false
     :: else
     fi;
     j++
  :: else -> break
  od;
  assert(exclusion)
}

/* The client has a new session; tickets of the one before are the store's to remove. */
inline new_session(c) {
  expired[c] = false;
  lease_ok[c] = true;
  leaving[c] = 0;
  born[c] = next_nonce[c];
  if
  :: st[c] == idle || st[c] == holding -> ends(c)
#ifdef ADOPT_OLD_TICKET
  :: st[c] != idle && st[c] != holding ->
     flying[c] = flying[c] | BIT(nonce[c]);
     forget_standing(c);
     st[c] = joining
#else
  :: st[c] != idle && st[c] != holding -> joins(c)
#endif
  fi
}

/* A join reaches the store: one that finds its ticket there changes nothing. */
inline lands(c, n) {
  if
  :: !THERE(TICKET(c, n)) ->
     assert(length < PLACES);
     queue[length] = TICKET(c, n);
     length++
  :: else
  fi;
  if
  :: st[c] == joining && nonce[c] == n -> read_line(c)
  :: else
  fi
}

/* An operator removes a waiter; the watch on its own ticket makes it look. */
inline evict(c, n) {
  take_out(TICKET(c, n));
#if EVICTIONS > 0
  if
  :: WAITS(c) && nonce[c] == n ->
     moved[c] = true;
     if
     :: st[c] == waiting && !deaf[c] -> event[c] = look
     :: else
     fi
  :: else
  fi
#else
  skip
#endif
}

/* One withdrawal reaches the store. Done means gone, and not to appear later. */
inline withdraw_now(c, n) {
#ifndef LATE_JOIN_LANDS
  flying[c] = flying[c] & ~BIT(n);
#endif
  take_out(TICKET(c, n))
}


/* Something of a session before is still at the store, or on its way to it. */
#define OLD_AT(k, c) (queue[k] != 0 && CLIENT(queue[k]) == c && NONCE(queue[k]) < born[c])
#define OLD_FLYING(c) (flying[c] & (BIT(born[c]) - 1) & ~BIT(nonce[c]))
#define OLD(c) (OLD_FLYING(c) || OLD_AT(0, c) || OLD_AT(1, c) || OLD_AT(2, c) || \
                OLD_AT(3, c) || OLD_AT(4, c) || OLD_AT(5, c))

/* A look would read what client c knows already. */
#define KNOWN_AT(k, c) (queue[k] == MINE(c) && queue[(k) - 1] == pred[c] && more[c] == ((k) > 1))
#define KNOWN(c) (KNOWN_AT(1, c) || KNOWN_AT(2, c) || KNOWN_AT(3, c) || KNOWN_AT(4, c) || KNOWN_AT(5, c))

proctype client(byte c) {
end:
  do
  /* ---- an acquire */
  :: d_step { st[c] == idle && acquires > 0 -> acquires--; patient[c] = true; joins(c) }
  :: d_step { st[c] == idle && acquires > 0 -> acquires--; patient[c] = false; joins(c) }

  /* no answer to the join in time: the same nonce again, which finds the ticket if it is there */
  :: d_step { st[c] == joining && losses > 0 && !expired[c] ->
       losses--;
#ifdef BLIND_JOIN_RETRY
       joins(c)
#else
       answer[c] = none; pred[c] = 0; more[c] = false;
       flying[c] = flying[c] | BIT(nonce[c])
#endif
     }

  /* the store answers a look */
  :: d_step { st[c] == looking && answer[c] == none && !expired[c] -> read_line(c) }

  /* ---- the answer is judged */
  :: d_step { answer[c] == missing ->
#ifdef NO_OWN_CHECK
       grant(c)
#else
       leaving[c] = leaving[c] | BIT(nonce[c]); joins(c)
#endif
     }
  :: d_step { answer[c] == first && lease_ok[c] -> grant(c) }
  :: d_step { answer[c] == first && !lease_ok[c] -> forget_standing(c); st[c] = paused }
#ifdef ENDLESS_PAUSE
  :: d_step { st[c] == paused -> looks(c) }
#else
  :: d_step { st[c] == paused && lease_ok[c] -> looks(c) }
#endif
  :: d_step { answer[c] == behind -> answer[c] = none; st[c] = setting }

  /* ---- the watch on the predecessor */
  :: d_step { st[c] == setting && !expired[c] ->
       st[c] = waiting;
       find(pred[c]);
       if
       :: at == length ->
#ifdef CHECK_THEN_WATCH
          deaf[c] = true
#else
          event[c] = look
#endif
       :: else
       fi
     }
  :: d_step { st[c] == setting && losses > 0 -> losses--; st[c] = waiting; deaf[c] = true }
  :: d_step { st[c] == waiting && event[c] != quiet && losses > 0 -> losses--; event[c] = quiet; deaf[c] = true }
  :: d_step { st[c] == waiting && event[c] != quiet -> looks(c) }
#ifdef GONE_MEANS_HELD
  :: d_step { st[c] == waiting && event[c] != quiet && lease_ok[c] -> grant(c) }
#else
  :: d_step { st[c] == waiting && event[c] == gone && !more[c] && lease_ok[c] -> grant(c) }
#endif
#if !defined(CHECK_THEN_WATCH) && !defined(NO_BACKSTOP)
  /* the backstop: a look from time to time; those that would read what is known already are left out */
  :: d_step { st[c] == waiting && event[c] == quiet && !expired[c] && !KNOWN(c) -> looks(c) }
#endif

  /* ---- the end of it */
  :: d_step { st[c] == holding && !lost[c] -> leaving[c] = leaving[c] | BIT(nonce[c]); ends(c) }
  :: d_step { st[c] == holding && lost[c] ->
#ifndef LOST_TICKET_STAYS
       leaving[c] = leaving[c] | BIT(nonce[c]);
#endif
       ends(c)
     }
  :: d_step { WAITS(c) && !patient[c] ->
#ifndef CANCEL_LEAVES_TICKET
       leaving[c] = leaving[c] | BIT(nonce[c]);
#endif
       ends(c)
     }

  /* ---- the session: the client's own deadline passes, or is renewed, or the client hears of the end, or begins a
   * new session by itself, or dies and another takes its number */
  :: d_step { lease_ok[c] && expiries > 0 && (st[c] != idle || leaving[c] != 0) ->
       expiries--; lease_ok[c] = false; lost[c] = (st[c] == holding) }
  :: d_step { !lease_ok[c] && !expired[c] -> lease_ok[c] = true }
  :: d_step { expired[c] -> flying[c] = 0; new_session(c) }
  :: d_step { !lease_ok[c] && !expired[c] && !OLD(c) -> new_session(c) }
  :: d_step { crashes > 0 && st[c] != idle && !OLD(c) ->
       crashes--;
       if
       :: expired[c] -> flying[c] = 0
       :: else
       fi;
       ends(c);
       new_session(c)
     }
  od
}

/* What the store does with what client c has sent. */
#define FOR_NONCE(n) \
  :: d_step { (flying[c] & BIT(n)) && !expired[c] -> flying[c] = flying[c] & ~BIT(n); lands(c, n) } \
  :: d_step { (flying[c] & BIT(n)) && !expired[c] && losses > 0 -> losses--; lands(c, n) } \
  :: d_step { (leaving[c] & BIT(n)) && !expired[c] -> leaving[c] = leaving[c] & ~BIT(n); withdraw_now(c, n) } \
  WITHDRAW_FAILS(n) \
  :: d_step { evictions > 0 && THERE(TICKET(c, n)) && queue[0] != TICKET(c, n) -> evictions--; evict(c, n) }

#ifdef NO_RELEASE_RETRY
#define WITHDRAW_FAILS(n) \
  :: d_step { (leaving[c] & BIT(n)) && losses > 0 -> losses--; leaving[c] = leaving[c] & ~BIT(n) }
#else
#define WITHDRAW_FAILS(n) /* its answer is lost, and it is sent again */ \
  :: d_step { (leaving[c] & BIT(n)) && !expired[c] && losses > 0 -> losses--; withdraw_now(c, n) }
#endif

proctype store(byte c) {
end:
  do
  FOR_NONCE(1)
  FOR_NONCE(2)
  FOR_NONCE(3)
  FOR_NONCE(4)
  FOR_NONCE(5)
  FOR_NONCE(6)
  FOR_NONCE(7)
  /* the session's time is up; the client's own deadline was earlier */
#ifdef STORE_EXPIRES_FIRST
  :: d_step { !expired[c] && expiries > 0 && st[c] != idle ->
       expiries--;
#else
  :: d_step { !expired[c] && !lease_ok[c] ->
#endif
       expired[c] = true; flying[c] = 0; take_out_all(c, born[c], 255)
     }
  /* and that of the session before */
  :: d_step { OLD(c) -> flying[c] = flying[c] - OLD_FLYING(c); take_out_all(c, 0, born[c]) }
  od
}

/* The world calms down; and when nothing can move any more, what is left is judged. */
active proctype world() {
  atomic {
    i = 0;
    do
    :: i < CLIENTS -> run client(i); run store(i); i++
    :: else -> break
    od
  };
  do
  :: d_step { expiries + losses + evictions + crashes > 0 -> expiries = 0; losses = 0; evictions = 0; crashes = 0 }
  :: timeout -> break
  od;
  atomic {
    i = 0;
    do
    :: i < length ->
       j = CLIENT(queue[i]);
       no_orphan = no_orphan && st[j] != idle && queue[i] == MINE(j);
       i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < CLIENTS -> progress = progress && st[i] == idle && acquires == 0; i++
    :: else -> break
    od
  };
#ifndef EXCLUSION_ONLY
  assert(no_orphan);
  assert(progress);
#endif
  skip
}
