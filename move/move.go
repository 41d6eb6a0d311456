package move

import (
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// Errors of Copy, and of opening a store that a copy has touched.
var (
	// ErrMoved says that everything in the store was moved elsewhere.
	ErrMoved = errors.New("this store was moved")
	// ErrUnfinished says that a copy into the store has not ended.
	ErrUnfinished = errors.New("a copy into this store has not ended")
	// ErrNotEmpty says that the target holds something already.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrChanged says that the source was used since the copy began.
	ErrChanged = errors.New("the source was used since the copy began")
	// ErrUsed says that nodes have used the target since the copy ended.
	ErrUsed = errors.New("the target was used since the copy ended")
	// ErrElsewhere says that the source was not moved to this target.
	ErrElsewhere = errors.New("the source was not moved to this store")
	// ErrSame says that source and target are one store.
	ErrSame = errors.New("source and target are the same store")
	// ErrInUse says that a node uses the store.
	ErrInUse = errors.New("a node uses this store")
	// ErrSchema says that a store has the tables of another release.
	ErrSchema = errors.New("tables of another release")
	// ErrDiffers says that the target is not what the source is.
	ErrDiffers = errors.New("the copy is not what the source is")
	// ErrContent says that a message cannot be copied as it is.
	ErrContent = errors.New("a message cannot be copied")
)

// Exporter reads a store that nobody uses.
type Exporter interface {
	// Origin tells one store, and one time of its use, from another.
	Origin(ctx context.Context) (Origin, error)
	// Now is an instant of the store's clock.
	Now(ctx context.Context) (int64, error)
	Totals(ctx context.Context) (Totals, error)
	// Read returns the rows of a part after a number, in order, with instants
	// as distances from base.
	Read(ctx context.Context, base int64, part Part, after int64) (Page, error)
}

// Source is a store that may be moved. Nothing but its mark is changed.
type Source interface {
	Exporter
	// Mark says that everything was moved; nodes refuse the store from then on.
	Mark(ctx context.Context, m Moved) error
	// Unmark takes the mark away.
	Unmark(ctx context.Context) error
}

// Importer fills a store that nobody uses, and reads it back.
type Importer interface {
	Exporter
	// Holds names what is in the store; empty: nothing is.
	Holds(ctx context.Context) (string, error)
	// Begin notes a copy, and that new rows get numbers above those of the source.
	Begin(ctx context.Context, p Progress, t Totals) error
	// Write adds a page and notes the progress, both or neither.
	Write(ctx context.Context, page *Page, p Progress) error
	// Place lets the next message of each ordering key go that has nobody on
	// the way. It may be done again.
	Place(ctx context.Context) error
	// Counts are the counters that the store keeps.
	Counts(ctx context.Context) (holdfast.Counts, error)
	// End notes that the copy has ended.
	End(ctx context.Context, p Progress) error
}

// Limits of a page. The last row may go over the bytes.
const (
	PageRows  = 1000
	PageBytes = 4 << 20
)

// Part is what one page holds rows of.
type Part string

// The parts, in the order in which they are copied.
const (
	Settings Part = "settings"
	Messages Part = "messages"
	Events   Part = "history"
	Inbox    Part = "inbox"
	// Notifications come after what they are made of.
	Notifications Part = "notifications"
)

func parts() []Part { return []Part{Settings, Messages, Events, Inbox, Notifications} }

// None is an instant that there is not.
const None = -1 << 63

// Origin is which store it is.
type Origin struct {
	Store string    // made once, by chance
	Use   string    // another one whenever it was used meanwhile
	Moved *Moved    // nil: it was not
	Copy  *Progress // of the last copy into it; nil: there was none
}

// Moved is the mark of a store from which everything was moved.
type Moved struct {
	To    string `json:"to"`    // for people
	Store string `json:"store"` // Origin.Store of the target
	At    string `json:"at"`
}

// Totals is how much there is.
type Totals struct {
	Messages int64 `json:"messages"`
	Events   int64 `json:"history"`
	Inbox    int64 `json:"inbox"`

	Notifications int64 `json:"notifications"`

	LastMessage, LastEvent, LastInbox int64 `json:"-"` // the highest numbers; a notification's is a message's
}

func (t *Totals) all() int64 { return t.Messages + t.Events + t.Inbox + t.Notifications }

// Progress is how far a copy is, kept in the target.
type Progress struct {
	From     string  `json:"from"`     // for people
	Store    string  `json:"store"`    // Origin of the source
	Use      string  `json:"use"`      //
	Base     int64   `json:"base"`     // an instant of the source,
	HereNow  int64   `json:"here_now"` // and the same moment here
	Part     Part    `json:"part"`
	After    int64   `json:"after"`
	Copied   Totals  `json:"copied"`
	Compared *Report `json:"compared,omitempty"` // and found alike
	Done     bool    `json:"done"`
	Ended    string  `json:"ended,omitempty"` // Origin.Use of the target, when it was done
}

// Page is some rows of one part.
type Page struct {
	Settings *Config
	Messages []Message
	Events   []Event
	Inbox    []Incoming
	Last     int64 // number of the last row
	End      bool  // there are none behind it

	Notifications []Notification
}

// Config is what is set, whatever messages there are.
type Config struct {
	Lanes   []Lane // by destination
	Tokens  []Token
	Sites   []Site
	Notices int64         // bits: of parked messages, of expired ones
	Leaps   []belief.Leap // of the source's clock: what ended because of them would end in the copy

	Book     int64 // version of channels and lists
	Channels []Channel
	Lists    []List
}

// Lane is what belongs to a destination.
type Lane struct {
	Destination string
	Strict      bool
	Fault       string
	FaultSince  int64
	Paused      bool // by a person
	Decided     int64
	DecidedBy   string
}

// Token is access to the API.
type Token struct {
	Name, Role    string
	Hash          []byte
	Created, Used int64
}

// Site is a site that the node, a central one, knows. Hashes are nil where there
// is none.
type Site struct {
	Name, Version                                             string
	Token, Credential, Former                                 []byte
	Created, TokenUntil, FormerUntil, Enrolled, Seen, Revoked int64
}

// Message is one message, wherever it stands. It is never claimed: what a
// process had in hand that died is pending.
type Message struct {
	Seq                                      int64
	ID                                       holdfast.ID
	Source, Destination, Kind, Endpoint      string
	CorrelationID, OrderingKey               string
	Payload                                  []byte
	Headers, Retry                           string // JSON, as stored
	TTL                                      int64  // 0: none
	Broken                                   bool   // the content is not what was accepted; it is final
	State                                    holdfast.State
	Created, Due, Expires, FirstTry, Settled int64
	Start                                    int64 // of one that waits for its key: not before
	Failures, Tries, Cycle                   int64
	Reason                                   string
	Waits                                    bool // for another one of its ordering key
	Force                                    bool
	GivenUp                                  bool // discarded while it was in hand: the next owner ends it
}

// Event is one row of the journal.
type Event struct {
	Seq, Message               int64
	Kind, State, At            int64
	Cycle, Attempt, Outcome    int64
	Charged, Maybe             bool
	Took                       int64
	Reason, Code, Error, Actor string
}

// Incoming is an id that the inbox remembers, and the message if it is kept.
type Incoming struct {
	Seq                          int64
	Source                       string
	ID                           holdfast.ID
	Endpoint                     string
	Hash                         []byte
	Kept                         bool
	Received, Processed, Expires int64
	Response                     []byte

	Kind, Headers, CorrelationID string // of a kept one
	Payload                      []byte
}
