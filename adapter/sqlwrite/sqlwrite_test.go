package sqlwrite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

const table = "create table orders (id varchar(80) primary key, plant varchar(200), amount numeric(38,12), n bigint, rate double precision, ok boolean, more text, check (n < 1000000000000000000))"

// SF-02: each value arrives as what it is.
func TestAMessageIsOneRow(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, table)
		w := p.writer(t, map[string]string{
			"Book":   "insert into orders (id, plant, amount, n, rate, ok, more) values (:_id, :order.plant, :amount, :n, :rate, :ok, :more)",
			"Meta":   "insert into orders (id, plant, more) values (:_correlation_id, :_source, :_payload)",
			"All":    "select :" + strings.Join(sqltext.Own(), ", :"),
			"Own":    "insert into orders (id, plant, more) values (:_id, :_correlation_id, 'own')",
			"Cancel": "update orders set ok = :ok where n >= :least",
		})
		m := message("Book", `{"order":{"plant":"Zürich 7"},"amount":12345678901234567890.123456789012,"n":987654321987654321,"rate":-1.25e-3,"ok":true,"more":{"a": [1, 2]}}`)
		if p.driver == "sqlite" { // whose numbers end at 64 bits
			m.Payload = []byte(strings.Replace(string(m.Payload), "12345678901234567890.123456789012", "12345.125", 1))
		}
		if r := deliver(t, w, m); string(r.Response) != `{"rowsAffected":1}` || r.Duplicate {
			t.Errorf("got %s", r.Response)
		}
		amount := "12345678901234567890.123456789012"
		if p.driver == "sqlite" {
			amount = "12345.125"
		}
		for column, want := range map[string]string{
			"id": string(m.ID), "plant": "Zürich 7", "amount": amount, "n": "987654321987654321", "rate": "-0.00125", "more": `{"a": [1, 2]}`,
		} {
			if got := p.one(t, "select "+column+" from orders"); got != want {
				t.Errorf("%s: got %s, want %s", column, got, want)
			}
		}
		if got := p.one(t, "select count(*) from orders where ok"); got != "1" {
			t.Error("true has not arrived")
		}
		deliver(t, w, message("Book", `{"order":{"plant":null},"amount":1e3,"n":1.0,"rate":0,"ok":null,"more":""}`))
		if got := p.one(t, "select count(*) from orders where plant is null and amount = 1000 and n = 1 and rate = 0 and ok is null and more = ''"); got != "1" {
			t.Error("null, or a number in another form, has not arrived")
		}
		if r := deliver(t, w, message("Cancel", `{"ok":false,"least":1}`)); string(r.Response) != `{"rowsAffected":2}` {
			t.Errorf("got %s", r.Response)
		}
		if r := deliver(t, w, message("Cancel", `{"ok":false,"least":999999999999999999}`)); string(r.Response) != `{"rowsAffected":0}` {
			t.Errorf("got %s", r.Response)
		}
		m = message("Meta", `{}`)
		m.CorrelationID = "c-1"
		deliver(t, w, m)
		if got := p.one(t, "select more from orders where plant = 'shop-12' and id = 'c-1'"); got != "{}" {
			t.Errorf("got %s", got)
		}
		deliver(t, w, message("All", `{}`))
		deliver(t, w, message("Own", `{}`)) // what a message does not have is NULL
		if got := p.one(t, "select plant from orders where more = 'own'"); got != "NULL" {
			t.Errorf("got %s", got)
		}
	})
}

func second(_ holdfast.Receipt, err error) error { return err }

// SF-03: what no repetition cures parks at once.
func TestWhatIsWrongForGoodIsPermanent(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, table)
		p.exec(t, "create table needs (a varchar(5) not null)")
		insert := "insert into orders (id, n, amount) values (:id, :n, :amount)"
		w := p.writer(t, map[string]string{
			"Book": insert, "NotNull": "insert into needs (a) values (:a)", "Deep": "insert into needs (a) values (:a.b.c)",
			"Free": "insert into needs (a) values ('x')",
		})
		deliver(t, w, message("Book", `{"id":"a","n":1,"amount":null}`))
		for name, c := range map[string]struct {
			endpoint, payload, code string
			words                   []string
		}{
			"the same key":       {"Book", `{"id":"a","n":1,"amount":null}`, "duplicate", nil},
			"a check":            {"Book", `{"id":"b","n":1000000000000000001,"amount":null}`, "constraint", nil},
			"not null":           {"NotNull", `{"a":null}`, "constraint", nil},
			"no such statement":  {"Other", `{}`, "no_statement", []string{`"Other"`}},
			"a member missing":   {"NotNull", `{"b":1}`, "missing_parameter", []string{`"a"`}},
			"no object there":    {"Deep", `{"a":{"b":7}}`, "missing_parameter", []string{`"a.b.c"`}},
			"a list":             {"Free", `[]`, "bad_payload", nil},
			"no JSON":            {"Free", `{"a"`, "bad_payload", nil},
			"nothing":            {"Free", ``, "bad_payload", nil},
			"something behind":   {"Free", `{} {}`, "bad_payload", nil},
			"a name twice":       {"NotNull", `{"a":1,"a":2}`, "bad_payload", nil},
			"what is no UTF-8":   {"NotNull", "{\"a\":\"\xff\"}", "bad_payload", nil},
			"a number of SQL":    {"NotNull", `{"a":0x1}`, "bad_payload", nil},
			"half of a letter":   {"NotNull", `{"a":"\ud800"}`, "bad_payload", nil},
			"nothing but spaces": {"Free", `  `, "bad_payload", nil},
		} {
			err := second(w.Deliver(t.Context(), message(c.endpoint, c.payload)))
			if err == nil {
				t.Errorf("%s: got no error", name)
				continue
			}
			f := holdfast.AsFailure(err)
			if f.Outcome != holdfast.Permanent || f.Code != c.code || f.MaybeDelivered {
				t.Errorf("%s: got %v %s: %v, want permanent %s", name, f.Outcome, f.Code, err, c.code)
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: got %q, want %s in it", name, err, word)
				}
			}
		}
		if p.driver != "sqlite" { // which takes any value for any type, and any length
			fails(t, second(w.Deliver(t.Context(), message("Book", `{"id":"c","n":"many","amount":null}`))), holdfast.Permanent, "bad_value", false)
			fails(t, second(w.Deliver(t.Context(), message("Book", `{"id":"c","n":1,"amount":1e999999999}`))), holdfast.Permanent, "bad_value", false)
			fails(t, second(w.Deliver(t.Context(), message("NotNull", `{"a":"longer than five"}`))), holdfast.Permanent, "bad_value", false)
		}
		if got := p.one(t, "select count(*) from orders"); got != "1" {
			t.Errorf("got %s rows, want the first only", got)
		}
		deliver(t, w, message("Free", `{}`)) // the connections are in order
	})
}

// SF-35: with a unique key on the message id, a repeat has no effect: either
// it counts as a success, or the statement itself says so.
func TestARepeatIsHarmless(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, table)
		ignoring := map[string]string{
			"sqlite":   "insert into orders (id, n) values (:_id, :n) on conflict do nothing",
			"postgres": "insert into orders (id, n) values (:_id, :n) on conflict (id) do nothing",
			"mysql":    "insert into orders (id, n) values (:_id, :n) on duplicate key update id = id",
		}[p.driver]
		w := p.writer(t, map[string]string{"Book": "insert into orders (id, n) values (:_id, :n)", "Ignore": ignoring, "NotNull": "insert into orders (id) values (:n)"},
			func(c *sqlwrite.Config) { c.Duplicate = true })
		m := message("Book", `{"n":1}`)
		deliver(t, w, m)
		if r := deliver(t, w, m); !r.Duplicate || string(r.Response) != `{"rowsAffected":0,"duplicate":true}` {
			t.Errorf("got %+v", r)
		}
		m = message("Ignore", `{"n":2}`)
		deliver(t, w, m)
		if r := deliver(t, w, m); r.Duplicate || string(r.Response) != `{"rowsAffected":0}` {
			t.Errorf("got %+v", r)
		}
		if got := p.one(t, "select count(*) from orders"); got != "2" {
			t.Errorf("got %s rows, want 2", got)
		}
		p.exec(t, "create table strict_one (a integer not null)")
		w = p.writer(t, map[string]string{"NotNull": "insert into strict_one (a) values (:a)"}, func(c *sqlwrite.Config) { c.Duplicate = true })
		fails(t, second(w.Deliver(t.Context(), message("NotNull", `{"a":null}`))), holdfast.Permanent, "constraint", false) // no other constraint counts as one
	})
}

// Values stay values, whatever they look like.
func TestValuesNeverBecomeSQL(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, "create table notes (id varchar(80) primary key, note text)")
		w := p.writer(t, map[string]string{"Note": "insert into notes (id, note) values (:_id, :note)", "Ends": `insert into notes (id, note) values (:_id, ':note; ''' || :note)`})
		for _, note := range []string{
			`'); drop table notes; --`, `\'); drop table notes; -- `, `" or ""="`, `:_id`, `?`, `$1`, `@p1`, `${jndi}`, `%s%n`, `\`, `\\'`, "\u2019; drop table notes",
			`/*`, `*/`, `--`, "line\nfeed", "\u00bf\u0027", "😀", strings.Repeat("x'", 30_000),
		} {
			payload := `{"note":` + quote(note) + `,"_id":"not mine","\u0000":"","'; drop table notes":1}`
			m := message("Note", payload)
			deliver(t, w, m)
			if got := p.one(t, "select note from notes where id = '"+string(m.ID)+"'"); got != note {
				t.Errorf("got %q, want %q", got, note)
			}
		}
		hostile := message("Note", `{"note":"x"}`)
		hostile.ID = `'); drop table notes; --` // an id may be any printable text
		deliver(t, w, hostile)
		if got := p.one(t, "select count(*) from notes"); got != "20" {
			t.Errorf("got %s rows, want 20", got)
		}
		for _, endpoint := range []string{`Note'; drop table notes; --`, strings.Repeat("x", 128), `"`, "note"} {
			fails(t, second(w.Deliver(t.Context(), message(endpoint, `{"note":"x"}`))), holdfast.Permanent, "no_statement", false)
		}
	})
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// SF-02: a payload brings SQL only where it may.
func TestRawSQLOnlyWhereItIsAllowed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, "create table notes (id varchar(80) primary key, note text)")
		named := map[string]string{"Note": "insert into notes (id, note) values (:_id, :note)"}
		raw := `{"sql":"insert into notes (id, note) values (:_id, :note)","params":{"note":"it's"},"types":{"note":"text"}}`
		shut := p.writer(t, named)
		fails(t, second(shut.Deliver(t.Context(), message("Any", raw))), holdfast.Permanent, "no_statement", false)
		open := p.writer(t, named, func(c *sqlwrite.Config) { c.Raw = true })
		deliver(t, open, message("Any", raw))
		deliver(t, open, message("Note", `{"note":"by name"}`))
		deliver(t, open, message("Any", `{"sql":"update notes set note = note"}`))
		for payload, code := range map[string]string{
			`{"sql":"insert into notes (id) values (1); drop table notes"}`: "bad_statement",
			`{"sql":"commit"}`:                               "bad_statement",
			`{"sql":"set autocommit = 1"}`:                   "bad_statement",
			`{"sql":""}`:                                     "bad_statement",
			`{"sql":"select :_nothing"}`:                     "bad_statement",
			`{"sql":7}`:                                      "bad_payload",
			`{"sql":["select 1"]}`:                           "bad_payload",
			`{"params":{}}`:                                  "bad_payload",
			`{"sql":"select 1","params":[]}`:                 "bad_payload",
			`{"sql":"select 1","note":"by name"}`:            "bad_payload",
			`{"sql":"select :a","types":{"a":"text"}}`:       "missing_parameter",
			`{"sql":"select :a","types":{"a":"varchar(5)"}}`: "bad_payload",
			`{"sql":"select :a","types":{"a":7}}`:            "bad_payload",
			`{"sql":"select :a","types":[]}`:                 "bad_payload",
			`{"sql":"vacuum cleaner"}`:                       "bad_statement",
			`{"sql":"select from where"}`:                    "bad_sql",
			`{"sql":"selec 1"}`:                              "bad_statement",
			`{"sql":"\ufeffcommit"}`:                         "bad_statement", // F1-11
			`{"sql":"lock tables notes write"}`:              "bad_statement",
		} {
			fails(t, second(open.Deliver(t.Context(), message("Any", payload))), holdfast.Permanent, code, false)
		}
		fails(t, second(open.Deliver(t.Context(), message("Any", `{"sql":"select :a","params":{"a":"5"},"types":{"a":"boolean"}}`))), holdfast.Permanent, "bad_value", false)
		if p.driver != "postgres" { // which says what its places are
			fails(t, second(open.Deliver(t.Context(), message("Any", `{"sql":"select :a","params":{"a":"5"}}`))), holdfast.Permanent, "bad_payload", false, `"types": {"a": "integer"}`)
		}
		if got := p.one(t, "select count(*) from notes"); got != "2" {
			t.Errorf("got %s rows, want 2", got)
		}
	})
}

// F1-11: what a statement of a payload leaves in its session, a lock here, is
// gone when it ends, whether it worked or not.
func TestRawSQLLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		var lock, isFree string
		switch p.driver {
		case "mysql":
			lock, isFree = "select get_lock('holdfast_test', 0)", "select is_free_lock('holdfast_test')"
		case "postgres":
			lock, isFree = "select pg_advisory_lock(4711)", "select count(*) = 0 from pg_locks where locktype = 'advisory' and objid = 4711"
		default:
			t.Skip("SQLite's sessions have nothing that a statement could leave")
		}
		w := p.writer(t, nil, func(c *sqlwrite.Config) { c.Raw = true })
		for _, text := range []string{lock, lock + " where 1 / 0 > 0 or no_such_column = 1", lock} {
			_, _ = w.Deliver(t.Context(), message("Any", `{"sql":`+quote(text)+`}`))
			for deadline := time.Now().Add(20 * time.Second); ; {
				if got := p.one(t, isFree); got == "1" || got == "true" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s: the lock is held still", text)
				}
			}
		}
	})
}
