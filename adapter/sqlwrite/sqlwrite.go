package sqlwrite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

// Writer writes to one database. Its zero value is not usable; New makes one.
// It may be used concurrently.
type Writer struct {
	conf       Config
	dialect    dialect
	target     target
	statements map[string]sqltext.Statement
	db         *sql.DB
}

var _ holdfast.Deliverer = (*Writer)(nil)

// New returns a Writer, and connects to nothing yet. Its error holds a
// FieldError for each fault.
func New(c Config) (*Writer, error) {
	statements, err := c.check()
	if err != nil {
		return nil, err
	}
	c.Connections = cmp.Or(c.Connections, 20)
	w := &Writer{conf: c, dialect: dialects()[c.Driver], statements: statements}
	from, err := w.dialect.open(c.DSN, &w.target)
	if err != nil {
		return nil, &holdfast.FieldError{Field: "DSN", Value: "[secret]", Problem: err.Error()}
	}
	w.target.hidden.AddURL(c.DSN)
	w.db = sql.OpenDB(from)
	w.db.SetMaxOpenConns(c.Connections)
	w.db.SetMaxIdleConns(c.Connections)
	if w.dialect.local {
		// One writes at a time anyway; and a connection that is kept would go on
		// writing into a file that has been replaced or removed.
		w.db.SetMaxOpenConns(1)
		w.db.SetMaxIdleConns(0)
	}
	w.db.SetConnMaxIdleTime(90 * time.Second)
	w.db.SetConnMaxLifetime(30 * time.Minute) // a name may lead elsewhere by then
	return w, nil
}

// Close ends the connections that are idle, and others when they are free.
func (w *Writer) Close() { _ = w.db.Close() }

// Address is the host and database, or the file, without a secret.
func (w *Writer) Address() string { return w.target.address }

// Ping connects, and writes nothing. Its error is a Failure.
func (w *Writer) Ping(ctx context.Context) error {
	conn, f := w.begin(ctx)
	if f != nil {
		return f
	}
	w.undo(ctx, conn)
	return nil
}

// Deliver writes one message, in one transaction. The response is
// {"rowsAffected": n}: how many rows the database says it has changed.
func (w *Writer) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	_, named := w.statements[m.Endpoint]
	s, from, f := w.statement(&m)
	if f != nil {
		return holdfast.Receipt{}, f
	}
	args, f := arguments(&m, from, s.Names)
	if f != nil {
		return holdfast.Receipt{}, f
	}
	for i, v := range args {
		args[i] = w.dialect.value(v)
	}
	r := holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}
	rows, f := w.write(ctx, s.Text, args, named)
	switch {
	case f == nil:
		r.Response = fmt.Appendf(nil, `{"rowsAffected":%d}`, rows)
		return r, nil
	case f.Code == codeDuplicate && w.conf.Duplicate:
		r.Duplicate, r.Response = true, []byte(`{"rowsAffected":0,"duplicate":true}`)
		return r, nil
	}
	return holdfast.Receipt{}, f
}

// statement is the one that a message wants, and where its parameters are.
func (w *Writer) statement(m *holdfast.Message) (s sqltext.Statement, from object, f *holdfast.Failure) {
	s, named := w.statements[m.Endpoint]
	if !named && !w.conf.Raw {
		return s, nil, refused(codeStatement, fmt.Errorf("no statement is named %q", m.Endpoint))
	}
	from, err := objectOf(m.Payload)
	if err != nil {
		return s, nil, refused(codePayload, fmt.Errorf("the payload %w", err))
	}
	if named {
		return s, from, nil
	}
	return w.raw(m.Endpoint, from)
}

// raw is the statement that a payload brings.
func (w *Writer) raw(endpoint string, payload object) (s sqltext.Statement, from object, f *holdfast.Failure) {
	for name := range payload {
		if name != "sql" && name != "params" {
			return s, nil, refused(codePayload, fmt.Errorf("no statement is named %q, and the payload is none: beside sql and params it has something else", endpoint))
		}
	}
	value, err := valueOf(payload["sql"])
	text, ok := value.(string)
	if err != nil || !ok || payload["sql"].Kind() != '"' {
		return s, nil, refused(codePayload, fmt.Errorf("no statement is named %q, and the payload has none as sql", endpoint))
	}
	if s, err = sqltext.Parse(sqltext.Dialect(w.conf.Driver), text); err != nil {
		return s, nil, refused(codeRaw, fmt.Errorf("the payload's sql %w", err))
	}
	if params, given := payload["params"]; given {
		if from, err = objectOf(params); err != nil {
			return s, nil, refused(codePayload, fmt.Errorf("params in the payload %w", err))
		}
	}
	return s, from, nil
}

// write runs a statement in a transaction of its own. It is made by text, not
// by sql.Tx: of the drivers, not all obey a context at a commit. A connection
// that has run a statement of a payload is not used again: nobody knows what it
// has left in its session, such as a lock or a setting.
func (w *Writer) write(ctx context.Context, text string, args []any, named bool) (rows int64, f *holdfast.Failure) {
	conn, f := w.begin(ctx)
	if f != nil {
		return 0, f
	}
	keep, undo := func() { _ = conn.Close() }, func() { w.undo(ctx, conn) }
	if !named {
		keep, undo = func() { discard(conn) }, func() { discard(conn) }
	}
	result, err := conn.ExecContext(ctx, text, args...)
	if err == nil {
		rows, err = result.RowsAffected()
	}
	if err == nil {
		err = ctx.Err() // past it no commit is begun, so that nobody has to wonder
	}
	if err != nil {
		f = w.failure(ctx, writing, err)
		undo()
		return 0, f
	}
	if _, err := conn.ExecContext(ctx, "commit"); err != nil {
		f = w.failure(ctx, committing, err)
		undo()
		return 0, f
	}
	keep()
	return rows, nil
}

// begin returns a connection with a transaction. Connections that have died
// while they were idle are thrown away: nothing has been asked of them yet.
func (w *Writer) begin(ctx context.Context) (*sql.Conn, *holdfast.Failure) {
	for stale := 0; ; stale++ {
		conn, err := w.db.Conn(ctx)
		if err != nil {
			return nil, w.failure(ctx, connecting, err)
		}
		if _, err = conn.ExecContext(ctx, w.dialect.begin); err == nil {
			return conn, nil
		}
		discard(conn)
		f := w.failure(ctx, connecting, err)
		if f.Outcome != holdfast.Unreachable || ctx.Err() != nil || stale >= w.conf.Connections {
			return nil, f
		}
	}
}

// undo rolls back, and gives a connection that is in order to the others. One
// that is not is closed, which rolls back, too.
func (w *Writer) undo(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(ctx, "rollback"); err != nil {
		discard(conn)
		return
	}
	_ = conn.Close()
}

func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // which has database/sql close it
	_ = conn.Close()
}
