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

// dialect is what differs from one database to the next.
type dialect struct {
	begin string // it fails where nothing may be written, or readOnly tells
	// readOnly is a query of a transaction that was just begun, and its answer
	// where nothing may be written; empty: begin itself says so.
	readOnly, yes string
	// atomic: what was not committed has not happened, whatever the statement
	// was. Others have tables without transactions, and procedures that commit.
	atomic bool
	// left says, where a database is not atomic, whether a statement that has
	// failed has left something behind, and rolls back; nil: nobody can say.
	left  func(ctx context.Context, conn *sql.Conn, s sqltext.Statement) bool
	local bool // a file: who waits, waits for a lock, and for nobody on a network
	open  func(dsn string, address *target) (driver.Connector, error)
	run   func(ctx context.Context, conn *sql.Conn, s sqltext.Statement, args []any) (rows int64, at stage, err error)
	judge func(err error) (verdict, bool) // false: the server has not answered
	// declared: whoever configures a statement says what its parameters are;
	// else the database does.
	declared bool
	bind     func(s sqltext.Statement, values []jsontext.Value) ([]any, *holdfast.Failure) // what run takes
}

// target is what may be shown of a DSN, and what may not.
type target struct {
	address string // host and database, or the file
	plain   bool   // another machine, that is not always reached by TLS
	hidden  secrets.Set
}

// isHere says whether a host is this machine; a folder is that of a socket.
func isHere(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || strings.HasPrefix(host, "/")
}

// verdict is what a database's answer means.
type verdict struct {
	outcome holdfast.Outcome
	code    string // ours
	number  string // the database's: an SQLSTATE, or a number
	text    string // the database's, as it came
	gone    bool   // the server ends, or ends this connection, or only begins
	unsure  bool   // at a commit: it may have happened
	own     bool   // the statement's own names are meant, whenever it is said
}

func dialects() map[string]dialect {
	return map[string]dialect{"sqlite": sqliteDialect(), "postgres": postgresDialect(), "mysql": mysqlDialect(), "sqlserver": sqlserverDialect()}
}

// Codes of failures, beside those of package exchange.
const (
	codeStatement   = "no_statement"      // the endpoint names none
	codePayload     = "bad_payload"       // it is no object, or no SQL is in it
	codeMissing     = "missing_parameter" // the payload lacks it
	codeRaw         = "bad_statement"     // the payload's SQL is not one statement
	codeDuplicate   = "duplicate"         // a unique key is there already
	codeConstraint  = "constraint"
	codeData        = "bad_value" // of a wrong type, too long, too large
	codeSQL         = "bad_sql"   // wrong, or about a table, column or function that is not there
	codeDenied      = "denied"    // no right to the object
	codeRaised      = "raised"    // by a trigger or procedure, on purpose
	codeDeadlock    = "deadlock"
	codeSerial      = "serialization"
	codeLock        = "locked" // for too long
	codeInterrupt   = "interrupted"
	codeResources   = "out_of_resources"
	codeDiskFull    = "disk_full"
	codeConnections = "too_many_connections"
	codeGone        = "shutting_down"
	codeServer      = "server_error"
	codeUnknown     = "unknown_error" // in none of our tables; raised, where a statement was answered so
	codeCredentials = "credentials_refused"
	codeDatabase    = "no_database"
	codeReadOnly    = "read_only"
)

// bind makes values what drivers take, by the types that are declared.
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

// bindSigned is bind for what has no integers beyond 63 bits.
func bindSigned(s sqltext.Statement, values []jsontext.Value) ([]any, *holdfast.Failure) {
	args, f := bind(s, values)
	for i, v := range args {
		if _, large := v.(uint64); large {
			return nil, unfitting(s.Names[i], errors.New("is larger than the integers of this database"))
		}
	}
	return args, f
}

// connector is a driver's way to a server whose handshake ends when its
// context does, whatever the driver does with that.
type connector struct {
	driver.Connector
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	h := &handshake{}
	defer context.AfterFunc(ctx, h.cut)()
	conn, err := c.Connector.Connect(context.WithValue(ctx, handshakeKey{}, h))
	if err == nil && ctx.Err() != nil { // cut just now, perhaps
		_ = conn.Close()
		return nil, ctx.Err()
	}
	return conn, err
}

type handshakeKey struct{}

// handshake has the connection that is being made.
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

// dial connects, for a handshake that can be cut.
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
