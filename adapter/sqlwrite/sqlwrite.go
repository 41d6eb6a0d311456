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

// Writer writes to one database. Use New; the zero value is not usable. A Writer may be used
// concurrently.
type Writer struct {
	conf       Config
	dialect    dialect
	target     target
	statements map[string]sqltext.Statement
	db         *sql.DB
	idle       int // most idle connections
}

var _ holdfast.Deliverer = (*Writer)(nil)

// New returns a Writer. It does not connect. Its error holds a *holdfast.FieldError for each fault.
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
	if w.target.plain && !c.Unencrypted {
		return nil, &holdfast.FieldError{Field: "DSN", Value: "[secret]", Problem: "names another machine without TLS, so that anybody on the way can read and change what is written: write TLS into it, or unencrypted: true if you trust everybody on that network"}
	}
	w.target.hidden.AddURL(c.DSN)
	w.db = sql.OpenDB(from)
	w.db.SetMaxOpenConns(c.Connections)
	w.idle = c.Connections
	if w.dialect.local {
		// SQLite allows one writer anyway. A kept connection would go on writing to a file that has
		// been replaced or removed.
		w.db.SetMaxOpenConns(1)
		w.idle = 0
	}
	w.db.SetMaxIdleConns(w.idle)
	w.db.SetConnMaxIdleTime(90 * time.Second)
	w.db.SetConnMaxLifetime(30 * time.Minute) // a name may lead elsewhere by then
	return w, nil
}

// Close closes the idle connections, and the others when they become idle.
func (w *Writer) Close() { _ = w.db.Close() }

// Address returns the host and database, or the file, without secrets.
func (w *Writer) Address() string { return w.target.address }

// Ping connects and writes nothing. Its error is a *holdfast.Failure.
func (w *Writer) Ping(ctx context.Context) error {
	conn, f := w.begin(ctx)
	if f != nil {
		return f
	}
	if f, _ = w.writable(ctx, conn); f != nil {
		discard(conn)
		return f
	}
	w.end(ctx, conn, true)
	return nil
}

// Deliver writes one message in one transaction. The response is {"rowsAffected": n}, the number of
// changed rows as the database reports it.
func (w *Writer) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	_, named := w.statements[m.Endpoint]
	s, from, f := w.statement(&m)
	if f != nil {
		return holdfast.Receipt{}, f
	}
	values, f := members(&m, from, s.Names)
	if f != nil {
		return holdfast.Receipt{}, f
	}
	args, f := w.dialect.bind(s, values)
	if f != nil {
		return holdfast.Receipt{}, f
	}
	r := holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}
	rows, f := w.write(ctx, s, args, named)
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

// statement returns the statement for a message, and the object with its parameters.
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

// raw returns the statement in a payload.
func (w *Writer) raw(endpoint string, payload object) (s sqltext.Statement, from object, f *holdfast.Failure) {
	for name := range payload {
		if name != "sql" && name != "params" && name != "types" {
			return s, nil, refused(codePayload, fmt.Errorf("no statement is named %q, and the payload is not a statement: it has other names than sql, params and types", endpoint))
		}
	}
	text, err := stringOf(sqltext.Type{}, payload["sql"])
	if err != nil {
		return s, nil, refused(codePayload, fmt.Errorf("no statement is named %q, and the payload does not have one as sql", endpoint))
	}
	types, err := w.typesOf(payload)
	if err != nil {
		return s, nil, refused(codePayload, err)
	}
	if s, err = sqltext.Parse(sqltext.Dialect(w.conf.Driver), text, types); err != nil {
		return s, nil, refused(codeRaw, fmt.Errorf("the payload's sql %w", err))
	}
	if missing := s.Untyped(); w.dialect.declared && len(missing) > 0 {
		return s, nil, refused(codePayload, fmt.Errorf(`the payload has no type for :%[1]s: write "types": {"%[1]s": "integer"} beside its params, or what else it is`, missing[0]))
	}
	if params, given := payload["params"]; given {
		if from, err = objectOf(params); err != nil {
			return s, nil, refused(codePayload, fmt.Errorf("params in the payload %w", err))
		}
	}
	return s, from, nil
}

// typesOf returns the types that a payload gives to the parameters of its SQL.
func (w *Writer) typesOf(payload object) (map[string]sqltext.Type, error) {
	types := map[string]sqltext.Type{}
	given, ok := payload["types"]
	if !ok {
		return types, nil
	}
	list, err := objectOf(given)
	if err != nil {
		return nil, fmt.Errorf("types in the payload %w", err)
	}
	for name, value := range list {
		text, err := stringOf(sqltext.Type{}, value)
		if err != nil {
			return nil, fmt.Errorf("the type of %q in the payload is not a text", name)
		}
		if types[name], err = sqltext.ParseType(sqltext.Dialect(w.conf.Driver), text); err != nil {
			return nil, fmt.Errorf("the type of %q in the payload %w", name, err)
		}
	}
	return types, nil
}

// attempt is a failed write: how far it came, and why it failed.
type attempt struct {
	statement sqltext.Statement
	named     bool // the statement is one of the configuration
	at        stage
	err       error
}

// write runs a statement in its own transaction. It begins and commits by SQL text instead of
// sql.Tx, because some drivers ignore the context at a commit.
func (w *Writer) write(ctx context.Context, s sqltext.Statement, args []any, named bool) (rows int64, f *holdfast.Failure) {
	conn, f := w.begin(ctx)
	if f != nil {
		return 0, f
	}
	rows, at, err := w.dialect.run(ctx, conn, s, args)
	if err == nil {
		err = ctx.Err() // after its end no commit is begun, so that its outcome is certain
	}
	if err == nil {
		at = committing
		_, err = conn.ExecContext(ctx, "commit")
	}
	if err != nil {
		return 0, w.failed(ctx, conn, attempt{s, named, at, err})
	}
	if named {
		_ = conn.Close()
	} else {
		discard(conn)
	}
	return rows, nil
}

// run first makes the database parse a statement without values. An error at that point is not
// about the message.
func run(ctx context.Context, conn *sql.Conn, s sqltext.Statement, args []any) (rows int64, at stage, err error) {
	prepared, err := conn.PrepareContext(ctx, s.Text)
	if err != nil {
		return 0, preparing, err
	}
	defer func() { _ = prepared.Close() }()
	result, err := prepared.ExecContext(ctx, args...)
	if err == nil {
		rows, err = result.RowsAffected()
	}
	return rows, writing, err
}

// begin returns a connection with a transaction. A connection that cannot begin one is closed
// together with all idle ones: they may have died, or lead to a server that accepts no writes any
// more. Then a new connection decides.
func (w *Writer) begin(ctx context.Context) (*sql.Conn, *holdfast.Failure) {
	for again := false; ; again = true {
		conn, err := w.db.Conn(ctx)
		if err != nil {
			return nil, w.unbegun(ctx, err)
		}
		if _, err = conn.ExecContext(ctx, w.dialect.begin); err == nil {
			return conn, nil
		}
		discard(conn)
		w.leave()
		if f := w.unbegun(ctx, err); again || w.dialect.local || ctx.Err() != nil {
			return nil, f
		}
	}
}

func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // makes database/sql close it
	_ = conn.Close()
}
