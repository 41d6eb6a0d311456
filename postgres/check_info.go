package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// NodeInfo is a node that shares the database.
type NodeInfo struct {
	Name  string
	Owner int64         // number of this start
	Up    time.Duration // time since the start
	Heard time.Duration // time since its last heartbeat
	Left  time.Duration // time left of its lease; negative: other nodes are taking over
	Lanes []string      // destinations that it delivers for
	About string        // host and process, for people
	Self  bool
}

// Nodes lists the nodes, this one among them, by name.
func (db *DB) Nodes(ctx context.Context) (list []NodeInfo, err error) {
	if err := db.usable(ctx); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	self := db.self.owner()
	if err := db.read(ctx, listNodes, nil, func(rows pgx.Rows) error {
		var n NodeInfo
		var up, heard, left int64
		err := rows.Scan(&n.Name, &n.Owner, &up, &heard, &left, &n.Lanes, &n.About)
		n.Up, n.Heard, n.Left, n.Self = duration(up), duration(heard), duration(left), n.Owner == self
		list = append(list, n)
		return err
	}); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return list, nil
}

// ServerInfo is what the server reports about itself, for people and for gauges.
type ServerInfo struct {
	Version     string
	Address     string // of the server's end of the connection; "local" means a Unix socket
	Database    string
	Role        string
	Pooled      bool // there is a proxy in between, such as pgbouncer
	Connections int  // open connections to all its databases; Most is their limit
	Most        int

	SynchronousCommit string // of this store's sessions
	SynchronousWith   string // synchronous_standby_names; "": a commit waits for no other server
	Fsync             bool
	FullPageWrites    bool

	// ClockAhead is the lead of the server's clock over this machine's, with an error of at most
	// ClockDoubt. Nothing depends on it.
	ClockAhead, ClockDoubt time.Duration

	// Holders keep dead rows from being removed. They are ordered from the oldest, at most 10. Many
	// dead rows make claims slow.
	Holders []Holder
	// Waiting counts commits that wait for synchronous standbys.
	Waiting int
	// Blind means that this role may not see the age of other roles' transactions. The remedy is
	// GRANT pg_read_all_stats TO the role.
	Blind bool
	// Hidden counts sessions of other roles that are in a transaction whose age this role may not
	// see.
	Hidden int

	Tables []TableInfo
	Size   int64 // of all tables with their indexes, bytes
}

// Holder is an open transaction, or something that has the same effect.
type Holder struct {
	Kind string        // "session", "prepared transaction", "replication slot", "standby"
	Who  string        // its name, and what it does
	Age  time.Duration // zero: unknown
	Back int64         // number of transactions that it is behind
}

// TableInfo is a table of the store.
type TableInfo struct {
	Name       string
	Live, Dead int64         // rows, by the server's estimate
	Size       int64         // with its indexes, bytes
	Vacuumed   time.Duration // time since dead rows were last removed; negative: never
}

// Oldest is the age of the oldest transaction whose age is known.
func (s *ServerInfo) Oldest() (age time.Duration) {
	for _, h := range s.Holders {
		age = max(age, h.Age)
	}
	return age
}

// Queue returns the table of pending and claimed messages. Its dead rows are the ones that slow
// down claims.
func (s *ServerInfo) Queue() TableInfo {
	for _, t := range s.Tables {
		if t.Name == "hf_queue" {
			return t
		}
	}
	return TableInfo{}
}

// Server reads the server's facts about itself. It needs no rights beyond the store's own, and is
// cheap enough to call every few seconds.
func (db *DB) Server(ctx context.Context) (s ServerInfo, err error) {
	if err := db.usable(ctx); err != nil {
		return s, fmt.Errorf("ask server: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, db.opts.Timeout)
	defer cancel()
	if err := db.askServer(bounded, &s); err != nil {
		return ServerInfo{}, fmt.Errorf("ask server: %w", explainTo(ctx, err))
	}
	return s, nil
}

func (db *DB) askServer(ctx context.Context, s *ServerInfo) error {
	conn, err := db.pools.own.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return askServer(ctx, conn.Conn(), s)
}

func askServer(ctx context.Context, conn *pgx.Conn, s *ServerInfo) error {
	s.Pooled = serverOf(conn).pooled
	var now int64
	asked := time.Now()
	if err := conn.QueryRow(ctx, serverClock).Scan(&now); err != nil {
		return err
	}
	trip := time.Since(asked)
	s.ClockAhead, s.ClockDoubt = time.UnixMicro(now).Sub(asked.Add(trip/2).Round(0)), trip/2

	b := &pgx.Batch{}
	b.Queue(serverFacts).QueryRow(func(r pgx.Row) error {
		return r.Scan(&s.Version, &s.Address, &s.Database, &s.Role, &s.Connections, &s.Most,
			&s.SynchronousCommit, &s.SynchronousWith, &s.Fsync, &s.FullPageWrites, &s.Waiting, &s.Blind)
	})
	b.Queue(serverHolders).Query(func(rows pgx.Rows) (err error) {
		s.Holders, err = pgx.CollectRows(rows, scanHolder)
		return err
	})
	b.Queue(serverHidden).QueryRow(func(r pgx.Row) error { return r.Scan(&s.Hidden) })
	b.Queue(serverTables, tableNames()).Query(func(rows pgx.Rows) (err error) {
		s.Tables, err = pgx.CollectRows(rows, scanTable)
		return err
	})
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	for _, t := range s.Tables {
		s.Size += t.Size
	}
	return nil
}

func scanHolder(row pgx.CollectableRow) (h Holder, err error) {
	var age int64
	err = row.Scan(&h.Kind, &h.Who, &age, &h.Back)
	h.Age = duration(age)
	return h, err
}

func scanTable(row pgx.CollectableRow) (t TableInfo, err error) {
	var vacuumed *int64
	err = row.Scan(&t.Name, &t.Live, &t.Dead, &t.Size, &vacuumed)
	t.Vacuumed = -1
	if vacuumed != nil {
		t.Vacuumed = duration(*vacuumed)
	}
	return t, err
}
