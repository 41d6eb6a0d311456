package sqlwrite_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// F1-102: the database computes with what was given: decimals as decimals,
// numbers as numbers.
func TestNumbersAreComputedWithAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, "create table totals (id varchar(80) primary key, total decimal(20,6), n bigint)")
		large, want := "12345678901234.123456", "12345678901234.123457"
		types := map[string]string{"total": "decimal(20,6)", "a": "integer", "b": "integer"}
		if p.driver == "sqlite" { // whose fractions have 15 digits
			large, want, types["total"] = "234.123456", "234.123457", "decimal(15,6)"
		}
		w := p.writer(t, map[string]string{
			"Sum":     "insert into totals (id, total, n) values (:_id, :total + 0.000001, 0)",
			"Between": "update totals set n = n + 1 where n between :a and :b",
			"Among":   "update totals set n = n + 1 where n in (:a, :b)",
			"Above":   "update totals set n = n + 100 where 0.0 < :total",
		}, func(c *sqlwrite.Config) { c.Types = types })
		deliver(t, w, message("Sum", `{"total":`+large+`}`))
		if got := p.one(t, "select total from totals"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		p.exec(t, "update totals set n = 9007199254740993")
		for _, endpoint := range []string{"Between", "Among"} {
			if r := deliver(t, w, message(endpoint, `{"a":9007199254740992,"b":9007199254740992}`)); string(r.Response) != `{"rowsAffected":0}` {
				t.Errorf("%s: another row was changed: %s", endpoint, r.Response)
			}
		}
		if r := deliver(t, w, message("Above", `{"total":-1234567.000001}`)); string(r.Response) != `{"rowsAffected":0}` {
			t.Errorf("a number below zero is above it: %s", r.Response)
		}
	})
}

// F1-103: the sender of a payload does not choose what a comparison means.
func TestANumberIsNotComparedWithText(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, "create table orders (order_no varchar(20) primary key)")
		p.exec(t, "insert into orders values ('0012'), ('12'), ('12abc'), ('A-7'), ('')")
		w := p.writer(t, map[string]string{"Cancel": "delete from orders where order_no = :order.no"}, func(c *sqlwrite.Config) {
			c.Types = map[string]string{"order.no": "text"}
		})
		for _, no := range []string{"0", "12", "12.0", "true"} {
			fails(t, second(w.Deliver(t.Context(), message("Cancel", `{"order":{"no":`+no+`}}`))), holdfast.Permanent, "bad_value", false, `"order.no" is`, "takes text")
		}
		deliver(t, w, message("Cancel", `{"order":{"no":"12"}}`))
		if got := p.one(t, "select count(*) from orders"); got != "4" {
			t.Errorf("got %s rows, want 4", got)
		}
	})
}

// F1-106: a session is strict, in UTF-8 and UTC, whatever the server's own
// settings are.
func TestSessionsAreStrict(t *testing.T) {
	t.Parallel()
	servers(t, func(t testing.TB, p *place) {
		p.exec(t, "create table settings (id varchar(80), said varchar(400))")
		said, want := "concat_ws(' ', @@sql_mode like '%STRICT_ALL_TABLES%', @@time_zone, @@character_set_client, @@character_set_connection)", "1 +00:00 utf8mb4 utf8mb4"
		if p.driver == "postgres" {
			said = "concat_ws(' ', current_setting('client_encoding'), current_setting('timezone'), current_setting('standard_conforming_strings'))"
			want = "UTF8 UTC on"
			p.exec(t, "create role weak login superuser password 'x'")
			p.exec(t, "alter role weak set timezone = 'Asia/Tokyo'")
			p.exec(t, "alter role weak set standard_conforming_strings = off")
			db := p.db
			t.Cleanup(func() {
				if _, err := db.ExecContext(context.Background(), "drop role weak"); err != nil {
					t.Error(err)
				}
			})
		}
		w := p.writer(t, map[string]string{"Say": "insert into settings (id, said) values (:_id, " + said + ")"}, func(c *sqlwrite.Config) {
			if p.driver == "postgres" {
				c.DSN = strings.Replace(c.DSN, "holdfast:"+p.password(t), "weak:x", 1)
			}
		})
		deliver(t, w, message("Say", `{}`))
		if got := p.one(t, "select said from settings"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// F1-107: types that a database was taught, and one that no session reads alike.
func TestTypesThatPostgreSQLWasTaught(t *testing.T) {
	t.Parallel()
	p := postgresPlace(t, pgtest.Shared(t))
	p.exec(t, "create type mood as enum ('glad', 'sad, \"so\"')")
	p.exec(t, "create domain share as numeric check (value between 0 and 1)")
	p.exec(t, "create table people (id varchar(80), m mood, ms mood[], s share, ss share[], u uuid, i inet, js jsonb[], d interval, cash money)")
	insert := func(column string) string {
		return fmt.Sprintf("insert into people (id, %[1]s) values (:_id, :%[1]s)", column)
	}
	statements := map[string]string{}
	for _, column := range []string{"m", "ms", "s", "ss", "u", "i", "js", "d", "cash"} {
		statements[column] = insert(column)
	}
	w := p.writer(t, statements, func(c *sqlwrite.Config) { c.Types = nil })
	for _, c := range []struct{ column, value, want, code string }{
		{"m", `"glad"`, "glad", ""},
		{"m", `"angry"`, "", "bad_value"},
		{"m", `1`, "", "bad_value"},
		{"ms", `["glad", null, "sad, \"so\""]`, `{glad,NULL,"sad, \"so\""}`, ""},
		{"s", `0.123456789012345678901`, "0.123456789012345678901", ""},
		{"s", `2`, "", "constraint"},
		{"s", `"x"`, "", "bad_value"},
		{"ss", `[0.5]`, "{0.5}", ""},
		{"ss", `0.5`, "", "bad_value"},
		{"ss", `["x"]`, "", "bad_value"},
		{"u", `"00000000-0000-0000-0000-000000000007"`, "00000000-0000-0000-0000-000000000007", ""},
		{"u", `"7"`, "", "bad_value"},
		{"i", `"10.0.0.1/8"`, "10.0.0.1/8", ""},
		{"i", `{}`, "", "bad_value"},
		{"js", `["5", 5, [1], {"a":"\\"}]`, `{"\"5\"",5,[1],"{\"a\": \"\\\\\"}"}`, ""},
		{"d", `"P1DT2H"`, "1 day 02:00:00", ""},
		{"cash", `12.5`, "", "bad_value"},
		{"cash", `"12.5"`, "", "bad_value"},
	} {
		m := message(c.column, `{"`+c.column+`":`+c.value+`}`)
		err := second(w.Deliver(t.Context(), m))
		if c.code != "" {
			fails(t, err, holdfast.Permanent, c.code, false)
			continue
		}
		if err != nil {
			t.Errorf("%s, %s: %v", c.column, c.value, err)
			continue
		}
		if got := p.one(t, "select "+c.column+"::text from people where id = '"+string(m.ID)+"'"); got != c.want {
			t.Errorf("%s, %s: got %s, want %s", c.column, c.value, got, c.want)
		}
	}
}

// A pooler in transaction mode is a destination as the server itself: nothing
// of a message outlives its transaction.
func TestAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	p := postgresPlace(t, server)
	p.exec(t, "create table orders (id varchar(80) primary key, amount numeric(20,6), ok boolean, at timestamptz, zone text)")
	p.dsn = pgtest.Bouncer(t, server, pgtest.Transaction).Through(t, p.dsn)
	w := p.writer(t, map[string]string{
		"Book": "insert into orders (id, amount, ok, at, zone) values (:_id, :amount, :ok, :at, current_setting('timezone'))",
		"Fix":  "update orders set amount = :amount where amount = :was",
	}, func(c *sqlwrite.Config) { c.Types, c.Raw = nil, true })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				deliver(t, w, message("Book", `{"amount":12345678901234.123456,"ok":true,"at":"2026-11-28T13:04:05.5+01:00"}`))
				deliver(t, w, message("Fix", `{"amount":1,"was":2}`))
				deliver(t, w, message("Any", `{"sql":"update orders set ok = :ok where id = :id","params":{"ok":true,"id":"x"}}`))
				fails(t, second(w.Deliver(t.Context(), message("Fix", `{"amount":"many","was":2}`))), holdfast.Permanent, "bad_value", false)
			}
		})
	}
	all.Wait()
	if got := p.one(t, "select count(*) from orders where amount = 12345678901234.123456 and ok and at = '2026-11-28 12:04:05.5+00' and zone = 'UTC'"); got != "80" {
		t.Errorf("got %s rows as they were sent, want 80", got)
	}
}
