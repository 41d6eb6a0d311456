package holdfast

import (
	"context"
	"time"
)

// Store is what a Dispatcher needs of an outbox. Every method is atomic and may be called
// concurrently. The store owns the clock: durations cross this contract, instants do not.
// Every store must pass the suite of package storetest.
type Store interface {
	Enqueuer
	Gauges

	// Claim takes due messages for each requested lane, at most the given number each. For
	// the messages that it leaves, Batch.Next tells how long until the earliest of each lane
	// is due; a store may give a shorter time. A claimed message belongs to the caller until
	// Settle. The store gives it to nobody else before its owner is gone. Claim never takes a
	// message whose TTL has passed, but expires it, so that expiry cannot race a delivery.
	// Claim does not wait for messages to come.
	Claim(ctx context.Context, slots map[string]int) (Batch, error)

	// ClaimFirst is Claim for messages that were not tried yet in their cycle, where others that
	// were tried before have filled what a lane holds. It may leave those that came minutes ago,
	// or while the store was not open, to Claim.
	ClaimFirst(ctx context.Context, slots map[string]int) ([]Claim, error)

	// Settle records outcomes. won[i] says whether s[i] took effect. If the caller has lost
	// the claim, its settlement changes nothing: another decision stands. After an error
	// nothing is recorded, and the same settlements may be tried again.
	Settle(ctx context.Context, s ...Settlement) (won []bool, err error)

	// Hasten makes the given messages of a destination due now, because it works again. It
	// takes those that are pending, not blocked, and due within the given time. A message
	// that was put off for longer stays as it is. Hasten returns how many it took.
	Hasten(ctx context.Context, destination string, within time.Duration, seqs ...int64) (int, error)

	// NotifyEnded says for which messages a notice is written (Ended.Message): the transaction
	// that parks or expires them writes it. The setting survives restarts. waiting reports
	// whether earlier notices wait for delivery.
	NotifyEnded(ctx context.Context, parked, expired bool) (waiting bool, err error)

	// Wake subscribes to the destinations whose messages may have become
	// claimable. A poll is the backstop.
	Wake() *Wake
}

// Gauges tell how much waits, and for how long.
type Gauges interface {
	// Counts returns the numbers kept in memory; it asks no database.
	Counts() Counts
	// Overdue returns how long the oldest due message of each destination has been due. It
	// reads an index, in one step for each destination. Destinations without due messages are
	// absent.
	Overdue(ctx context.Context) (map[string]time.Duration, error)
}

// Shared is a Store that dispatchers of several processes use at once.
type Shared interface {
	Store

	// Share returns how many requests of this dispatcher a destination may have now, out of
	// limit in all. It changes as other dispatchers come and go. Zero: the others have all of
	// them.
	Share(destination string, limit int) int

	// Leave says that this dispatcher stops delivering to a destination. From then on the
	// others have its share. Claim for the destination takes that back.
	Leave(destination string)

	// Holds reports whether a claim is still the caller's. It is not if the store has not heard
	// from the caller for so long that it may have given the message to another.
	Holds(c Claim) bool

	// Alone reports that no other process has the store now, as far as this one has heard.
	Alone() bool

	// Standing returns where a message stands, or ErrNotFound. While other processes have the
	// store, it is called often for each call that waits.
	Standing(ctx context.Context, id ID) (Standing, error)
}

// Owned is a Store that hands messages out in one process at a time.
type Owned interface {
	// Owner returns the process that owns the store where this one does not. Nothing is
	// claimed here until this one does. Empty: this one owns it. Owner is called often, and
	// does not block.
	Owner() string
}

// Batch is the result of one Claim call.
type Batch struct {
	Claims []Claim
	// Next is how long until the next message of each requested lane is due. An absent lane
	// has no known next message.
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
	Created  time.Time     // when the message was accepted, for people
	Expires  time.Duration // until the TTL ends, counted from Claim's return; negative: never

	taken time.Time // when the dispatcher got it
}

// Settlement is the end of one claim.
type Settlement struct {
	Seq, Token int64
	State      State         // Delivered, Pending, Parked, Discarded
	Reason     Reason        // with Parked and Discarded
	RetryIn    time.Duration // with Pending; a person's decision that came meanwhile wins
	Outcome    Outcome       // NotStarted: everything stays as if never claimed
	Charged    bool          // counts against the budget
	Code       string
	Error      string
	Maybe      bool          // the data was sent, but no answer came
	Took       time.Duration // of the attempt
	Detail     []byte        // more about the attempt, as JSON: Entry.Detail. It is kept only while something follows the journal
}

// LaneSettings are what the store itself must know about a lane, because it decides which
// message of an ordering key is next.
type LaneSettings struct {
	// Strict: a parked message stops its ordering key.
	Strict bool
	// LiveFirst: while there is a backlog, half of the claimed messages are the newest ones,
	// if the store can. It holds until the store is closed.
	LiveFirst bool
}

// LaneFaultInfo says why a lane is held. It survives restarts.
type LaneFaultInfo struct {
	Destination string
	Problem     string
	Since       time.Time
}

// Lanes keeps what belongs to a destination and not to a message.
type Lanes interface {
	ConfigureLane(ctx context.Context, destination string, s LaneSettings) error
	// SetLaneFault records why a lane is held; an empty problem clears it.
	SetLaneFault(ctx context.Context, destination, problem string) error
	LaneFaults(ctx context.Context) ([]LaneFaultInfo, error)

	// PauseLane records that a person wants a destination left alone. A paused one stays as it
	// is. Every dispatcher of the store sees it within a few seconds, and after a restart.
	// Dispatcher.Pause calls it.
	PauseLane(ctx context.Context, destination, actor string) error
	// ResumeLane ends a pause, and clears the fault of a lane that is held, so that it is tried
	// again.
	ResumeLane(ctx context.Context, destination, actor string) error
	// LaneDecisions returns the last decision about each destination that somebody has
	// decided about.
	LaneDecisions(ctx context.Context) ([]LaneDecision, error)
}

// LaneDecision is a person's last decision about a destination. The zero value is no
// decision.
type LaneDecision struct {
	Destination string
	Paused      bool // false: resumed
	Actor       string
	At          time.Time // for people: it moves when the store's clock is set
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

// Doubt says that a store does not believe its clock. A clock that is days wrong looks like
// a stop of days. What would end by such time, because of its TTL or its retention, is
// held until the doubt ends. Due messages are delivered as usual.
type Doubt struct {
	Claimed time.Duration // time that the clock says has passed unseen; zero: the clock is believed
	Left    time.Duration // until the clock is believed anyway; a confirmation or a corrected clock ends the doubt before
	Held    int64         // messages that are neither delivered nor expired meanwhile, as of the last sweep
}

// Doubting is a store that can doubt its clock.
type Doubting interface {
	Doubt() Doubt
	// HearTime passes on the present time of another machine's clock, told by a known sender.
	// Within ClockSkew it ends the doubt; else the doubt begins anew.
	HearTime(at time.Time)
}

// Retention is how long final rows are kept. Zero keeps them forever.
type Retention struct {
	Delivered, Expired, Discarded, Parked time.Duration
	// Held keeps the delivered messages of a destination at least this long.
	Held map[string]time.Duration

	// Track names the destinations whose messages are calls, each with its category. A message of
	// one that is purged before Tracking is over leaves a record of what became of it: package track.
	Track map[string]Category
	// Tracking is how long such a record is kept after the message ended. Zero: forever.
	Tracking time.Duration
}

// Outbox is what people see of messages and may do to them. Each verb starts from the
// states of Verb.States; in any other state nothing changes, and the error is ErrState. The
// history records who did it.
type Outbox interface {
	// Get returns one message with its history, or ErrNotFound.
	Get(ctx context.Context, id ID) (Record, error)
	// List returns one page, newest first.
	List(ctx context.Context, q Query) (Page, error)
	// Requeue starts a new cycle of a parked, expired or discarded message. Failures count
	// from zero, and it is due at once. Within its ordering key it takes its place by
	// acceptance: before later messages that are not in hand.
	Requeue(ctx context.Context, id ID, r Requeue) (Record, error)
	// Discard gives up a message that is not delivered. A claimed message ends with its
	// attempt, unless the attempt delivers it. Until then Record.Discarding is true.
	Discard(ctx context.Context, id ID, actor string) (Record, error)
	// Reschedule sets when a pending message is tried next. For a claimed message it sets the
	// time of the retry, if there is one. A message that waits for its ordering key goes on
	// waiting.
	Reschedule(ctx context.Context, id ID, r Reschedule) (Record, error)
	// Counts is Gauges.Counts.
	Counts() Counts
}

// Requeue says how a message is tried again.
type Requeue struct {
	TTL   time.Duration // zero: as long as the message had at first
	Force bool          // send it even if the receiver may have forgotten the id
	Actor string        // who asked
}

// Reschedule says when a message is tried next. The zero value means at once. If a doubted
// clock says that the message's TTL is over (Doubt), the TTL starts anew with its first
// length: a person has decided that the message is to be delivered.
type Reschedule struct {
	In    time.Duration // from now; must be before the end of its TTL
	Actor string        // who asked
}

// Query narrows a List. Zero fields do not narrow. No index leads to what Match and Text select: a
// store looks at a bounded number of messages for each page.
type Query struct {
	States       []State
	Destination  string
	Held         bool      // only messages with a HeldUntil; pages come in the store's own order
	Since, Until time.Time // accepted then or later; accepted before then
	Match        func(r *Record) bool
	Text         func(r *Record, payload []byte) bool // gets the first SearchedBytes; asked after all else
	Count        int                                  // not zero: Page.Count counts up to so many, and there are no Records; not with Held
	Limit        int                                  // 1 to 500; zero: 50
	After        string                               // Page.Next of the previous page
}

// SearchedBytes is how much of a payload Query.Text gets.
const SearchedBytes = 64 << 10

// Selects reports whether the times and Match of the query select a message.
func (q *Query) Selects(r *Record) bool {
	return (q.Since.IsZero() || !r.Created.Before(q.Since)) && (q.Until.IsZero() || r.Created.Before(q.Until)) && (q.Match == nil || q.Match(r))
}

// Searches reports whether the query has to look at the messages themselves.
func (q *Query) Searches() bool {
	return q.Match != nil || q.Text != nil || !q.Since.IsZero() || !q.Until.IsZero()
}

// Page is one page of messages, without payloads and histories. It may be short, even empty, and
// still have a Next.
type Page struct {
	Records     []Record
	Count       int       // of Query.Count
	Next        string    // empty: the last page, or all are counted
	LookedUntil time.Time // when the oldest message was accepted that was looked at so far; zero: the page is full, or the last one
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
	HeldUntil   time.Time // a doubted clock says its TTL is over: until then at most it is neither delivered nor ended; zero: not held
	LastAttempt time.Time // zero: never tried
	LastError   string
	LastCode    string    // of the failure with LastError
	Settled     time.Time // when it became final; zero: it is not final
	Discarding  bool      // discarded while it was in hand; it ends when the attempt ends
	Size        int       // of the payload, in bytes
	History     []Entry   // oldest first; filled by Get

	// Category is the destination's category where another node has the message and tells it,
	// as a site tells its central. A store leaves it empty.
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
