package sqlwrite_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
)

// SF-03: numbers of SQL Server, in the driver's own type, and what is no
// answer of it.
func TestNumbersOfSQLServer(t *testing.T) {
	t.Parallel()
	for number, c := range map[int32]struct {
		severity uint8
		outcome  holdfast.Outcome
		code     string
	}{
		2627: {14, holdfast.Permanent, "duplicate"}, 2601: {14, holdfast.Permanent, "duplicate"},
		515: {16, holdfast.Permanent, "constraint"}, 547: {16, holdfast.Permanent, "constraint"},
		102: {15, holdfast.Permanent, "bad_sql"}, 207: {16, holdfast.Permanent, "bad_sql"}, 208: {16, holdfast.Permanent, "bad_sql"}, 2812: {16, holdfast.Permanent, "bad_sql"},
		245: {16, holdfast.Permanent, "bad_value"}, 8115: {16, holdfast.Permanent, "bad_value"}, 2628: {16, holdfast.Permanent, "bad_value"},
		229: {14, holdfast.Permanent, "denied"}, 50000: {16, holdfast.Permanent, "raised"}, 51234: {16, holdfast.Permanent, "raised"},
		1205: {13, holdfast.Transient, "deadlock"}, 1222: {16, holdfast.Transient, "locked"}, 3960: {16, holdfast.Transient, "serialization"},
		1105: {17, holdfast.Transient, "disk_full"}, 9002: {17, holdfast.Transient, "disk_full"}, 701: {17, holdfast.Transient, "out_of_resources"},
		10928: {20, holdfast.Transient, "out_of_resources"}, 17809: {20, holdfast.Transient, "too_many_connections"},
		6005: {14, holdfast.Transient, "shutting_down"}, 40613: {17, holdfast.Transient, "shutting_down"}, 18401: {14, holdfast.Transient, "shutting_down"},
		18456: {14, holdfast.LaneFault, "credentials_refused"}, 18488: {14, holdfast.LaneFault, "credentials_refused"},
		241: {16, holdfast.Permanent, "bad_value"}, 242: {16, holdfast.Permanent, "bad_value"}, 8152: {16, holdfast.Permanent, "bad_value"},
		922: {14, holdfast.Transient, "shutting_down"}, 983: {14, holdfast.Transient, "shutting_down"}, 40501: {20, holdfast.Transient, "shutting_down"},
		4063: {11, holdfast.LaneFault, "no_database"}, 4064: {11, holdfast.LaneFault, "no_database"}, 911: {16, holdfast.LaneFault, "no_database"},
		4060: {11, holdfast.LaneFault, "no_database"}, 3906: {16, holdfast.LaneFault, "read_only"},
		823: {24, holdfast.Transient, "server_error"}, 99: {20, holdfast.Transient, "server_error"},
	} {
		for _, err := range []error{
			mssql.Error{Number: number, Class: c.severity},
			fmt.Errorf("around it: %w", mssql.Error{Number: number, Class: c.severity}),
			// The last of several says only that a statement has ended.
			mssql.Error{Number: 3621, Class: 0, All: []mssql.Error{{Number: number, Class: c.severity}, {Number: 3621}}},
		} {
			if o, code, answered := sqlwrite.Judge("sqlserver", err); o != c.outcome || code != c.code || !answered {
				t.Errorf("%d: got %v %s, want %v %s", number, o, code, c.outcome, c.code)
			}
		}
	}
	for _, err := range []error{io.EOF, &net.OpError{Op: "read", Err: io.EOF}, mssql.StreamError{InnerError: io.EOF}, errors.New("Error 18456: Login failed")} {
		if _, _, answered := sqlwrite.Judge("sqlserver", err); answered {
			t.Errorf("%v counts as an answer", err)
		}
	}
}

// tds is a peer that speaks as much of SQL Server's protocol as a login and
// the end of a statement take. It shows what the driver sends, and is no proof
// that a server would do as it does.
type tds struct {
	address string
	login   []byte            // tokens instead of a login
	answers map[string][]byte // tokens by a word in the request; others are done

	mu   sync.Mutex
	seen []string
}

func newTDS(t testing.TB, login []byte, answers map[string][]byte) *tds {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tds{address: l.Addr().String(), login: login, answers: answers}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return p
}

func (p *tds) serve(c net.Conn) {
	defer c.Close()
	for {
		kind, body, err := readTDS(c)
		if err != nil {
			return
		}
		switch kind {
		case 18: // prelogin: version, encryption not supported
			_, _ = c.Write(packet([]byte{0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0, 0, 0, 0, 2}))
		case 16:
			if p.login != nil {
				_, _ = c.Write(packet(append(p.login, done(2)...)))
				return
			}
			_, _ = c.Write(packet(append([]byte{0xad, 10, 0, 1, 0x74, 0, 0, 4, 0, 16, 0, 0, 0}, done(0)...)))
		default:
			text := fromUTF16(body)
			p.mu.Lock()
			p.seen = append(p.seen, text)
			p.mu.Unlock()
			answer := done(0x10)
			for word, tokens := range p.answers {
				if strings.Contains(text, word) {
					if tokens == nil {
						return // cut
					}
					answer = append(bytes.Clone(tokens), done(2)...)
				}
			}
			if strings.Contains(text, "begin tran") {
				answer = append([]byte{0xe3, 11, 0, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0}, answer...)
			}
			_, _ = c.Write(packet(answer))
		}
	}
}

func readTDS(r io.Reader) (kind byte, body []byte, err error) {
	for {
		h := make([]byte, 8)
		if _, err := io.ReadFull(r, h); err != nil {
			return 0, nil, err
		}
		part := make([]byte, int(binary.BigEndian.Uint16(h[2:]))-len(h))
		if _, err := io.ReadFull(r, part); err != nil {
			return 0, nil, err
		}
		if body = append(body, part...); h[1]&1 != 0 {
			return h[0], body, nil
		}
	}
}

func packet(body []byte) []byte {
	h := []byte{4, 1, 0, 0, 0, 0, 1, 0}
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(body)))
	return append(h, body...)
}

// done is the token that ends an answer: 2 with an error, 0x10 with one row.
func done(status byte) []byte { return []byte{0xfd, status, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0} }

func sqlError(number int32, severity byte, text string) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint32(b, uint32(number))
	b = append(b, 1, severity)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	b = append(b, toUTF16(text)...)
	b = append(b, 0, 0, 1, 0, 0, 0) // no names of server and procedure; line 1
	return append(binary.LittleEndian.AppendUint16([]byte{0xaa}, uint16(len(b))), b...)
}

func toUTF16(s string) (b []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// fromUTF16 reads what text there is in a request, from either alignment.
func fromUTF16(b []byte) string {
	var s strings.Builder
	for start := range 2 {
		for i := start; i+1 < len(b); i += 2 {
			if u := binary.LittleEndian.Uint16(b[i:]); u >= ' ' && u <= '~' {
				s.WriteByte(byte(u))
			}
		}
	}
	return s.String()
}

func (p *tds) place() *place {
	return &place{driver: "sqlserver", dsn: "sqlserver://holdfast:hunter2@" + p.address + "?database=mes&encrypt=disable"}
}

// SF-02, SF-03: what the driver makes of a statement, and of answers to it.
func TestSQLServerOverItsProtocol(t *testing.T) {
	t.Parallel()
	p := newTDS(t, nil, map[string][]byte{
		"taken":   sqlError(2627, 14, "Violation of PRIMARY KEY constraint"),
		"victim":  sqlError(1205, 13, "Transaction was deadlocked"),
		"nowhere": sqlError(208, 16, "Invalid object name 'nowhere'."),
		"cut":     nil,
	})
	w := p.place().writer(t, map[string]string{
		"Book": "insert into [or:ders] (id, n, amount, ok, more) values (:_id, :n, :amount, :ok, :more) -- :x", "Taken": "insert into taken (id) values (:_id)",
		"Victim": "update victim set n = 1", "Nowhere": "update nowhere set n = 1", "Cut": "update cut set n = 1",
	}, func(c *sqlwrite.Config) { c.Duplicate = true })
	if r := deliver(t, w, message("Book", `{"n":1,"amount":12345678901234567890.5,"ok":true,"more":null}`)); string(r.Response) != `{"rowsAffected":1}` {
		t.Errorf("got %s", r.Response)
	}
	p.mu.Lock()
	all := strings.Join(p.seen, "\n")
	p.mu.Unlock()
	for _, want := range []string{"begin transaction", "values (@p1, @p2, cast(@p3 as decimal(38,12)), @p4, @p5) -- :x", "12345678901234567890.5", "commit"} {
		if !strings.Contains(all, want) {
			t.Errorf("the server has not seen %q:\n%s", want, all)
		}
	}
	if r := deliver(t, w, message("Taken", `{}`)); !r.Duplicate {
		t.Errorf("got %+v", r)
	}
	fails(t, second(w.Deliver(t.Context(), message("Victim", `{}`))), holdfast.Transient, "deadlock", false, "1205", "deadlocked")
	fails(t, second(w.Deliver(t.Context(), message("Nowhere", `{}`))), holdfast.LaneFault, "bad_sql", false, "208")
	fails(t, second(w.Deliver(t.Context(), message("Cut", `{}`))), holdfast.Transient, "connection_lost", true)

	p = newTDS(t, sqlError(18456, 14, "Login failed for user 'holdfast', whose password is hunter2, or aHVudGVyMg== in base64."), nil)
	w = p.place().writer(t, map[string]string{"Book": "insert into t (id) values (:_id)"})
	err := second(w.Deliver(t.Context(), message("Book", `{}`)))
	fails(t, err, holdfast.LaneFault, "credentials_refused", false, "18456")
	if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVu")) {
		t.Errorf("the password is in %q", err)
	}

	p = newTDS(t, nil, map[string][]byte{"commit": nil})
	w = p.place().writer(t, map[string]string{"Book": "insert into t (id) values (:_id)"})
	fails(t, second(w.Deliver(soon(t, 5*time.Second), message("Book", `{}`))), holdfast.Transient, "connection_lost", true)
}
