package holdfast

import (
	"context"
	"time"
)

// Store is what a Dispatcher needs of an outbox. Every method is atomic and
// may be called concurrently. The store owns the clock: durations cross this
// contract, instants do not. storetest holds the suite that a store must pass.
type Store interface {
	Enqueuer
	Gauges

	// Claim takes due messages for each lane that is asked for, at most as
	// many as its number says, and reports how long until the earliest of the
	// rest of each is due (Next; a store may say less). A claimed message belongs to
	// the caller until Settle; the store gives it to nobody else before its
	// owner is gone. A message whose TTL has passed is never claimed: it
	// becomes expired here, so that expiry cannot race a delivery. Claim does
	// not wait for messages to come.
	Claim(ctx context.Context, slots map[string]int) (Batch, error)

	// Settle records outcomes. won[i] says whether s[i] took effect: a
	// settlement of a claim that is no longer the caller's changes nothing
	// (somebody else's decision stands). After an error nothing is recorded,
	// and the same settlements may be tried again.
	Settle(ctx context.Context, s ...Settlement) (won []bool, err error)

	// Hasten makes due now those of these messages of a destination that are pending,
	// not blocked, and due within the given time: it works again. What anybody has
	// put off for longer stays as it is. It returns how many there were.
	Hasten(ctx context.Context, destination string, within time.Duration, seqs ...int64) (int, error)

	// NotifyEnded says of which messages a notice is written (Ended.Message),
	// by the transaction that parks or expires them. It stays said over
	// restarts. waiting tells that notices of before wait to be delivered.
	NotifyEnded(ctx context.Context, parked, expired bool) (waiting bool, err error)

	// Wake subscribes to the destinations whose messages may have become
	// claimable. A poll is the backstop.
	Wake() *Wake
}

// Gauges tell how much waits, and for how long.
type Gauges interface {
	// Counts returns the numbers kept in memory; it asks no database.
	Counts() Counts
	// Overdue tells for how long the oldest due message of each destination has
	// been due: by an index, in one step for each destination. Those without due
	// messages are absent.
	Overdue(ctx context.Context) (map[string]time.Duration, error)
}

// Shared is a Store that dispatchers of several processes use at once.
type Shared interface {
	Store

	// Share is how many of the requests that a destination bears, limit in all,
	// may be this dispatcher's now. It changes as others come and go. Zero: none,
	// others have them.
	Share(destination string, limit int) int

	// Leave says that this dispatcher delivers to a destination no more: others
	// have its part from then on. Claim for it takes that back.
	Leave(destination string)

	// Holds says whether a claim is still the caller's. It is not when the store
	// has not heard of the caller for so long that it may have given the message
	// to another.
	Holds(c Claim) bool

	// Alone says that no other process has the store now, as far as this one has
	// heard.
	Alone() bool

	// Standing is where a message stands, or ErrNotFound. It is asked often for
	// each call that waits, while others have the store.
	Standing(ctx context.Context, id ID) (Standing, error)
}

// Owned is a Store that hands messages out in one process at a time.
type Owned interface {
	// Owner is the process that has the store where this one has not: nothing is
	// claimed here until it has. Empty: this one has it. It is asked often, and
	// does not block.
	Owner() string
}

// Batch is what one Claim call got.
type Batch struct {
	Claims []Claim
	// Next is how long until the next message of each lane that was asked for is
	// due; of those that are absent none is known.
	Next map[string]time.Duration
}

// Claim is a message in the hands of one owner.
type Claim struct {
	Message  Message       // Attempt is filled in
	Seq      int64         // the store's own key
	Token    int64         // claim number: fences a former owner's settlement
	Failures int           // charged failures of this cycle so far
	Tries    int           // tries of this cycle so far, charged or not
	Revision int           // a person's reschedules in this cycle so far; the store's own
	Expires  time.Duration // until the TTL ends, counted from Claim's return; negative: never

	taken time.Time // when the dispatcher got it
}

// Settlement is the end of one claim.
type Settlement struct {
	Seq, Token int64
	State      State         // Delivered, Pending, Parked, Discarded
	Reason     Reason        // with Parked and Discarded
	RetryIn    time.Duration // with Pending; what a person has decided meanwhile stands instead
	Outcome    Outcome       // NotStarted: everything stays as if never claimed
	Charged    bool          // counts against the budget
	Code       string
	Error      string
	Maybe      bool          // the data left, the answer did not come
	Took       time.Duration // of the attempt
}

// LaneSettings are what the store itself must know of a lane, because it
// decides which message of an ordering key is next.
type LaneSettings struct {
	// Strict: a parked message stops its ordering key.
	Strict bool
	// LiveFirst: while there is a backlog, half of what is handed out is what came
	// last, where the store can. It holds for the store as it is open.
	LiveFirst bool
}

// LaneFaultInfo is why a lane is held, kept over restarts.
type LaneFaultInfo struct {
	Destination string
	Problem     string
	Since       time.Time
}

// Lanes keeps what belongs to a destination rather than to a message.
type Lanes interface {
	ConfigureLane(ctx context.Context, destination string, s LaneSettings) error
	// SetLaneFault records why a lane is held; an empty problem clears it.
	SetLaneFault(ctx context.Context, destination, problem string) error
	LaneFaults(ctx context.Context) ([]LaneFaultInfo, error)

	// PauseLane notes that a person wants a destination left alone; one that is
	// paused already stays as it is. Every dispatcher of the store sees it within a
	// few seconds, and after a restart. Dispatcher.Pause calls it.
	PauseLane(ctx context.Context, destination, actor string) error
	// ResumeLane ends a pause, and clears the fault of a lane that is held, so
	// that it is tried again.
	ResumeLane(ctx context.Context, destination, actor string) error
	// LaneDecisions returns what people decided last, of each destination that
	// somebody has decided about.
	LaneDecisions(ctx context.Context) ([]LaneDecision, error)
}

// LaneDecision is what a person last decided about a destination. The zero value
// is none.
type LaneDecision struct {
	Destination string
	Paused      bool // false: resumed
	Actor       string
	At          time.Time // for people: it moves when the store's clock is put right
	Version     int64     // grows with each decision about the destination, and stays the same until the next
}

// Sweepable is the upkeep that a Sweeper runs: expire, purge, nothing else.
// Each call does one bounded page and reports whether more is waiting, so
// that writers never wait for a whole sweep.
type Sweepable interface {
	Expire(ctx context.Context) (expired int, more bool, err error)
	Purge(ctx context.Context, r Retention) (purged int, more bool, err error)
}

// ClockSkew is how far two clocks may be apart and still confirm each other.
const ClockSkew = 5 * time.Minute

// Doubt is what a store does not believe its clock. A clock that is days wrong
// looks like a stop of days: what would end because of such time, by its TTL or
// its retention, is held until the doubt ends. What is due is delivered as usual.
type Doubt struct {
	Claimed time.Duration // so much time has passed by the clock, and nobody saw it; zero: the clock is believed
	Left    time.Duration // until it is believed, unless others confirm it or it is put right before
	Held    int64         // messages that are neither delivered nor expired meanwhile, as the last sweep has counted them
}

// Doubting is a store that doubts its clock.
type Doubting interface {
	Doubt() Doubt
	// HearTime is told what the clock of another machine shows now, by somebody
	// who is known: within ClockSkew it ends the doubt, else the doubt begins anew.
	HearTime(at time.Time)
}

// Retention is how long final rows are kept. Zero keeps them for ever.
type Retention struct {
	Delivered, Expired, Discarded, Parked time.Duration
	// Held keeps the delivered ones of a destination for so long at least.
	Held map[string]time.Duration
}

// Outbox is what people see of the messages and may do to them. Each verb names
// the states that it starts from, Verb.States; in any other state nothing is
// changed, and the error is ErrState. Who did it stands in the history.
type Outbox interface {
	// Get returns one message with its history, or ErrNotFound.
	Get(ctx context.Context, id ID) (Record, error)
	// List returns one page, newest first.
	List(ctx context.Context, q Query) (Page, error)
	// Requeue starts a new cycle of a parked, expired or discarded message:
	// failures count from zero and it is due at once. Of an ordering key it takes
	// its place by acceptance: before what came later and is not in hand.
	Requeue(ctx context.Context, id ID, r Requeue) (Record, error)
	// Discard gives up a message that is not delivered. One that is claimed ends
	// with its attempt, unless that delivers it: Record.Discarding until then.
	Discard(ctx context.Context, id ID, actor string) (Record, error)
	// Reschedule says when a pending message is tried next. Of a claimed one it
	// holds for the retry, if there is to be one. A message that waits for its
	// ordering key goes on waiting for it.
	Reschedule(ctx context.Context, id ID, r Reschedule) (Record, error)
	// Counts is that of Gauges.
	Counts() Counts
}

// Requeue says how a message is tried again.
type Requeue struct {
	TTL   time.Duration // zero: as long as the message had at first
	Force bool          // send it even if the receiver may have forgotten the id
	Actor string        // who asked
}

// Reschedule says when a message is tried next. The zero value: at once. One whose
// TTL is over by a clock that is doubted (Doubt) gets it anew, from then on and as
// long as it was at first: a person has decided that it is to be delivered.
type Reschedule struct {
	In    time.Duration // from now; must end before its TTL does
	Actor string        // who asked
}

// Query narrows a List. Zero fields do not narrow.
type Query struct {
	States      []State
	Destination string
	Held        bool   // only those with a HeldUntil; pages come in an order of the store's own
	Limit       int    // 1 to 500; zero: 50
	After       string // Page.Next of the page before
}

// Page is one page of messages, without payloads and histories.
type Page struct {
	Records []Record
	Next    string // empty: no more
}

// Record is a message as people see it.
type Record struct {
	Message     Message
	Seq         int64
	State       State
	Reason      Reason
	Failures    int // charged failures of this cycle
	Tries       int // tries of this cycle
	Cycle       int
	Created     time.Time
	Due         time.Time // zero unless pending
	Expires     time.Time // zero: never
	HeldUntil   time.Time // by a clock that is doubted its TTL is over: until then at the latest it is neither delivered nor ended; zero: it is not held
	LastAttempt time.Time // zero: never tried
	LastError   string
	Settled     time.Time // when it became final; zero: it is not
	Discarding  bool      // it was discarded while it was in hand, and ends when the attempt has
	Size        int       // of the payload, in bytes
	History     []Entry   // oldest first; filled by Get

	// Category is that of the destination where another node has the message
	// and says so, as a site does to its central. A store leaves it empty.
	Category Category
}

// Counts are gauges in memory, seeded once at start (SF-15).
type Counts struct {
	Lanes                             map[string]LaneCounts
	Pending, Claimed, Parked, Expired int64
	Inbox, Kept                       int64 // ids remembered; rows that wait to be fetched
	Received, Duplicates              int64 // since start
}

// LaneCounts are the numbers of one destination.
type LaneCounts struct{ Pending, Parked, Expired int64 }
