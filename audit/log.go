package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// ErrTree means that the tiles of a log are not what its size says.
var ErrTree = errors.New("the tree of the audit log is damaged")

// FollowerName is the name under which a Log follows the journal.
const FollowerName = "audit"

// Times of a Log.
const (
	LeaseFor  = 6 * time.Second // how long the right to append holds; see Store.Lease
	leaseEach = 2 * time.Second
	retryWait = time.Second // doubled up to a minute
	retryMost = time.Minute
)

// Log appends records to the log of one node, or of the nodes that share a store. It follows the
// journal: the records of a page, the tree and the head of the log are written together with its
// place in the journal. So each entry is recorded once, whatever dies when.
type Log struct {
	Store   Store
	Journal holdfast.Journal
	// Describe makes records of entries. It gets no entries that the log makes records of itself. An
	// error ends the page, which comes again.
	Describe func(ctx context.Context, page []holdfast.Entry) ([]Record, error)
	// Site and Node name the log, together with the store's incarnation. Nodes that share a store must
	// have the same.
	Site, Node string
	// Shared says that other nodes may append to the same store. They take turns by a lease.
	Shared bool
	// Key signs checkpoints.
	Key *Key
	// Witness keeps them. Nil: only the store does.
	Witness Witness
	// Doubt returns why the log may not be the one that was signed before; "": it is. Meanwhile nothing is signed. Nil: nobody
	// doubts.
	Doubt func() string
	// Held returns up to which record an own log may be purged: at a site, what central has. Nil: all.
	Held   func(origin string) int64
	Logger *slog.Logger // nil: none

	failures atomic.Int64
	unkept   atomic.Int64
	leads    atomic.Bool
	grown    atomic.Int64 // records appended by this process
	ring     chan struct{}
	once     sync.Once
	unsigned atomic.Pointer[string] // why the last checkpoint was not made

	rotating  sync.Mutex
	signing   sync.Mutex
	witnessed *Checkpoint // the newest one of the witness, guarded by signing

	// What stands when the next page comes. They belong to the follower.
	log  *rows.AuditLog
	head Hash
	tree edge
}

// Failures returns how often records could not be written. They are written later.
func (l *Log) Failures() int64 { return l.failures.Load() }

// Leads reports whether this node appends to the log now.
func (l *Log) Leads() bool { return l.leads.Load() }

// Run appends until ctx ends, which is no error. After an error it begins again, with what it has not
// written.
func (l *Log) Run(ctx context.Context) error {
	l.setUp()
	wait, told := retryWait, ""
	for ctx.Err() == nil {
		began := time.Now()
		err := l.lead(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, holdfast.ErrClosed) {
			return err
		}
		if time.Since(began) > retryMost {
			wait, told = retryWait, ""
		}
		if err != nil {
			l.failures.Add(1)
			if text := err.Error(); text != told {
				told = text
				l.Logger.ErrorContext(ctx, "audit records could not be written; they are written as soon as it is possible", slog.Any("error", err))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		if wait = min(2*wait, retryMost); err == nil {
			wait = retryWait
		}
	}
	return nil //nolint:nilerr // it was told, and what could not be written comes again
}

func (l *Log) setUp() {
	l.once.Do(func() {
		l.ring = make(chan struct{}, 1)
		if l.Logger == nil {
			l.Logger = slog.New(slog.DiscardHandler)
		}
	})
}

// lead follows the journal while this node has the lease.
func (l *Log) lead(ctx context.Context) error {
	follow := func(ctx context.Context) error {
		l.leads.Store(true)
		defer l.leads.Store(false)
		return l.Journal.Project(ctx, holdfast.Follower{Name: FollowerName, FromStart: true, About: true, Resume: l.resume}, l.project)
	}
	if !l.Shared {
		return follow(ctx)
	}
	lease, err := l.Store.Lease(ctx, 0)
	for err == nil && lease == 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(leaseEach):
		}
		lease, err = l.Store.Lease(ctx, 0)
	}
	if err != nil {
		return fmt.Errorf("take the lease of the audit log: %w", err)
	}
	ours, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- follow(ours) }()
	tick := time.NewTicker(leaseEach)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			end()
			return err
		case <-tick.C:
		}
		if lease, err = l.Store.Lease(ctx, lease); err != nil || lease == 0 {
			end()
			return errors.Join(err, <-ended)
		}
	}
}

// Origin returns the name of the log in the present history of the store.
func (l *Log) Origin(ctx context.Context) (string, error) {
	incarnation, err := l.Store.Incarnation(ctx)
	if err != nil {
		return "", fmt.Errorf("read incarnation: %w", err)
	}
	return Origin(l.Site, l.Node, incarnation), nil
}

// resume reads where the log ends.
func (l *Log) resume(ctx context.Context) error {
	origin, err := l.Origin(ctx)
	if err != nil {
		return err
	}
	log, err := l.Store.OpenLog(ctx, origin, true)
	if err != nil {
		return fmt.Errorf("open audit log %s: %w", origin, err)
	}
	tree, err := tilesOf(ctx, l.Store, log.Log).edge(log.Size)
	if err != nil {
		return fmt.Errorf("audit log %s: %w", origin, err)
	}
	l.log, l.tree, l.head = log, tree, Hash{}
	copy(l.head[:], log.Head)
	return nil
}

// project makes the rows of a page.
func (l *Log) project(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
	records, err := l.records(ctx, page)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, nil
	}
	var list []holdfast.Row
	since := l.tree.size
	for i := range records {
		some, err := l.append(&records[i])
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	list = append(list, l.tree.rows(l.log.Log, since)...)
	head := *l.log
	head.Size, head.Head = l.tree.size, slices.Clone(l.head[:])
	if l.grown.Add(int64(len(records))) >= checkpointEach {
		select {
		case l.ring <- struct{}{}:
		default:
		}
	}
	return append(list, &head), nil
}

// records returns the records of a page.
func (l *Log) records(ctx context.Context, page []holdfast.Entry) (list []Record, err error) {
	if l.tree.size == 0 {
		r, err := l.opened(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	for rest := page; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(e holdfast.Entry) bool { return ownKind(&e) != "" })
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			some, err := l.Describe(ctx, rest[:n])
			if err != nil {
				return nil, fmt.Errorf("describe entries: %w", err)
			}
			list = append(list, some...)
		}
		if rest = rest[n:]; len(rest) > 0 {
			if rest[0].Code != codeOpen {
				list = append(list, l.own(&rest[0]))
			}
			rest = rest[1:]
		}
	}
	return list, nil
}

// append adds a record to the end of the log, and returns its rows.
func (l *Log) append(r *Record) (list []holdfast.Row, err error) {
	data, values, err := r.Leaf()
	if err != nil {
		return nil, err
	}
	leaf := LeafHash(data)
	l.tree.add(leaf, func(level int, number int64, hashes []byte) {
		list = append(list, &rows.AuditTile{Log: l.log.Log, Level: int64(level), Number: number, Hashes: slices.Clone(hashes)})
	})
	seq := l.tree.size
	l.head = ChainHash(seq, l.head, leaf)
	list = append(list, Row(l.log.Log, seq, r, data, l.head))
	for _, v := range values {
		list = append(list, &rows.AuditValue{Log: l.log.Log, Seq: seq, Field: v.Field, At: r.Occurred.UnixMicro(), Salt: v.Salt, Value: v.Text})
	}
	return list, nil
}

// Row returns the row of a record. The columns that are sealed in it are empty.
func Row(log, seq int64, r *Record, leaf []byte, hash Hash) *rows.AuditRecord {
	return &rows.AuditRecord{
		Log: log, Seq: seq, ID: r.ID, At: r.Occurred.UnixMicro(), Stored: rows.Now, Channel: string(r.Channel), Kind: string(r.Kind), Status: string(r.Status),
		Failed: r.Status.IsError(), Site: r.Site, Node: r.Node, Instance: r.Instance, Actor: r.Actor, Target: r.column(), Corr: r.Correlation,
		Leaf: leaf, Hash: slices.Clone(hash[:]),
	}
}

// column returns the target as its column has it.
func (r *Record) column() string {
	if slices.Contains(r.Personal, "target") {
		return ""
	}
	return r.Target
}

// Matches reports whether the columns of a row are those of its record, besides the id, which each store keeps in its own form, and
// besides what Row is given with the record.
func (r *Record) Matches(row *rows.AuditRecord) bool {
	return row.At == r.Occurred.UnixMicro() && row.Channel == string(r.Channel) && row.Kind == string(r.Kind) && row.Status == string(r.Status) &&
		row.Failed == r.Status.IsError() && row.Site == r.Site && row.Node == r.Node && row.Instance == r.Instance && row.Actor == r.Actor &&
		row.Target == r.column() && row.Corr == r.Correlation
}
