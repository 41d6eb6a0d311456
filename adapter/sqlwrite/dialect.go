package sqlwrite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

// dialect holds what differs between databases.
type dialect struct {
	begin string // fails if nothing may be written, unless readOnly reports that
	// readOnly is a query for a transaction that has just begun, and yes its answer if nothing may
	// be written. Empty: begin itself fails then.
	readOnly, yes string
	// atomic: what was not committed has not happened, whatever the statement was. Other databases
	// have tables without transactions, and procedures that commit.
	atomic bool
	// left reports, for a database that is not atomic, whether a failed statement has left
	// something behind; it rolls back. Nil: unknown.
	left  func(ctx context.Context, conn *sql.Conn, s sqltext.Statement) bool
	local bool // a file: waiting means waiting for a lock, never for a network
	open  func(dsn string, address *target) (driver.Connector, error)
	run   func(ctx context.Context, conn *sql.Conn, s sqltext.Statement, args []any) (rows int64, at stage, err error)
	judge func(err error) (verdict, bool) // false: the server has not answered
	// declared: the configuration gives the types of parameters. Otherwise the database does.
	declared bool
	bind     func(s sqltext.Statement, values []jsontext.Value) ([]any, *holdfast.Failure) // makes the arguments of run
}

// target is the part of a DSN that may be shown, and the part that must not be.
type target struct {
	address string // host and database, or the file
	plain   bool   // another machine that is not always reached by TLS
	hidden  secrets.Set
}

// isHere reports whether host is this machine; a folder is that of a socket.
func isHere(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || strings.HasPrefix(host, "/")
}

// verdict is the meaning of a database's answer.
type verdict struct {
	outcome holdfast.Outcome
	code    string // our code
	number  string // the database's code: an SQLSTATE or a number
	text    string // the database's text, unchanged
	gone    bool   // the server stops, closes this connection, or is starting
	unsure  bool   // if this comes from a commit, the commit may have happened
	own     bool   // the error is about names in the statement itself, at whatever time it is given
}

func dialects() map[string]dialect {
	return map[string]dialect{"sqlite": sqliteDialect(), "postgres": postgresDialect(), "mysql": mysqlDialect(), "sqlserver": sqlserverDialect()}
}

// Codes of failures, in addition to those of package exchange.
const (
	codeStatement   = "no_statement"      // the endpoint names no statement
	codePayload     = "bad_payload"       // the payload is not an object, or has no SQL
	codeMissing     = "missing_parameter" // the payload lacks a parameter
	codeRaw         = "bad_statement"     // the payload's SQL is not one statement
	codeDuplicate   = "duplicate"         // a unique key exists already
	codeConstraint  = "constraint"
	codeData        = "bad_value" // wrong type, too long or too large
	codeSQL         = "bad_sql"   // wrong SQL, or a table, column or function that does not exist
	codeDenied      = "denied"    // no permission on the object
	codeRaised      = "raised"    // raised on purpose by a trigger or procedure
	codeDeadlock    = "deadlock"
	codeSerial      = "serialization"
	codeLock        = "locked" // locked for too long
	codeInterrupt   = "interrupted"
	codeResources   = "out_of_resources"
	codeDiskFull    = "disk_full"
	codeConnections = "too_many_connections"
	codeGone        = "shutting_down"
	codeServer      = "server_error"
	codeUnknown     = "unknown_error" // in none of our tables; becomes raised if it answers a statement
	codeCredentials = "credentials_refused"
	codeDatabase    = "no_database"
	codeReadOnly    = "read_only"
)

// bind converts values to what drivers accept, by their declared types.
func bind(s sqltext.Statement, values []jsontext.Value) ([]any, *holdfast.Failure) {
	args := make([]any, len(values))
	for i, v := range values {
		var err error
		if args[i], err = valueOf(s.Types[i], v); err != nil {
			return nil, unfitting(s.Names[i], err)
		}
	}
	return args, nil
}

// bindSigned is bind for databases without integers beyond 63 bits.
func bindSigned(s sqltext.Statement, values []jsontext.Value) ([]any, *holdfast.Failure) {
	args, f := bind(s, values)
	for i, v := range args {
		if _, large := v.(uint64); large {
			return nil, unfitting(s.Names[i], errors.New("is larger than the integers of this database"))
		}
	}
	return args, f
}

// connector connects with a driver. Its handshake ends when the context does, whatever the driver
// does about that.
type connector struct {
	driver.Connector
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	h := &handshake{}
	defer context.AfterFunc(ctx, h.cut)()
	conn, err := c.Connector.Connect(context.WithValue(ctx, handshakeKey{}, h))
	if err == nil && ctx.Err() != nil { // perhaps the connection was cut just now
		_ = conn.Close()
		return nil, ctx.Err()
	}
	return conn, err
}

type handshakeKey struct{}

// handshake holds the connection that is being made.
type handshake struct {
	mu    sync.Mutex
	conn  net.Conn
	ended bool
}

func (h *handshake) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended = true; h.conn != nil {
		_ = h.conn.Close()
	}
}

// dial connects for a handshake that can be cut off.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	h, ok := ctx.Value(handshakeKey{}).(*handshake)
	if !ok {
		return conn, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn = conn; h.ended {
		_ = conn.Close()
	}
	return conn, nil
}
