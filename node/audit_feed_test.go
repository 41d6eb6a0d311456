package node_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/mailpittest"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// trail returns the records of a correlation id, the oldest first, each in a line.
func trail(t *testing.T, c *client.Client, id string) (lines []string, list []api.AuditRecord) {
	t.Helper()
	p, err := c.Audit().Query(t.Context(), client.AuditQuery{AuditFilter: api.AuditFilter{CorrelationID: id}})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(p.Records, func(a, b api.AuditRecord) int { return int(a.Seq - b.Seq) })
	for _, r := range p.Records {
		lines = append(lines, r.Kind+" "+r.Status)
	}
	return lines, p.Records
}

// NO-13: the course of notifications over a real mail server, with what a person decides about one. Contents are
// summarized without secrets.
func TestTheAuditLogHasTheCourseOfNotifications(t *testing.T) {
	t.Parallel()
	mail := mailpittest.Start(t, "--smtp-allowed-recipients", `@plant\.test$`)
	c := parse(t, "audit: {content: summary, redact: [body]}")
	c.Notifications.Seed = filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(c.Notifications.Seed, fmt.Appendf(nil, `
channels:
  mail:
    kind: email
    settings: {host: 127.0.0.1, port: %d, tls: none, from: alarm@plant.test}
    retry: {attempts: 2, interval: 500ms}
lists:
  operators: {recipients: [{channel: mail, address: jane@plant.test}]}
  gone: {recipients: [{channel: mail, address: joe@elsewhere.test}]}
`, mail.Port), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := client.New(serve(t, c), "")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	send := func(list string) string {
		t.Helper()
		n, err := a.Notifications().Send(t.Context(), api.NewNotification{List: list, Subject: "Pump 3", Body: "the code is 4711"})
		if err != nil {
			t.Fatal(err)
		}
		return n.ID
	}
	var records []api.AuditRecord
	follows := func(id string, want ...string) {
		t.Helper()
		var got []string
		defer func() {
			if t.Failed() {
				t.Logf("got %q, want %q", got, want)
			}
		}()
		waittest.Until(t, "the records are there", func() bool {
			got, records = trail(t, a, id)
			return slices.Equal(got, want)
		})
	}
	good, bad := send("operators"), send("gone")
	follows(good, "NotifySend Enqueued", "NotifyReach Success", "NotifyDeliver Attempted", "NotifyDeliver Delivered")
	if r := records[0].Request; !strings.Contains(r, "Pump 3") || strings.Contains(r, "4711") {
		t.Errorf("its summary is %q", r)
	}
	if records[2].DurationMs == 0 || records[2].Actor != "system" || records[3].Error != "" {
		t.Errorf("the attempt: %+v", records[2])
	}
	refused := []string{"NotifySend Enqueued", "NotifyReach Failed", "NotifyDeliver Attempted", "NotifyDeliver Parked"}
	follows(bad, refused...)
	if records[3].Error == "" || records[1].Target != "joe@elsewhere.test" {
		t.Errorf("the end: %+v, after %+v", records[3], records[1])
	}
	if _, err := a.Notifications().Retry(t.Context(), "", bad, api.RetryNotification{}); err != nil {
		t.Fatal(err)
	}
	again := append(slices.Clone(refused), "Retry Success")
	waittest.Until(t, "it is parked again", func() bool {
		got, _ := trail(t, a, bad)
		return len(got) > len(again) && got[len(got)-1] == "NotifyDeliver Parked"
	})
	if _, err := a.Notifications().Discard(t.Context(), "", bad, api.DiscardNotification{}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is given up", func() bool {
		got, list := trail(t, a, bad)
		last := list[len(list)-1]
		return slices.Equal(got[:5], again) && slices.Equal(got[len(got)-2:], []string{"Discard Success", "NotifyDeliver Discarded"}) && last.Error == ""
	})
}

// What a destination answered is in the records of the attempt and of the end, without secrets.
func TestTheAuditLogHasWhatWasAnswered(t *testing.T) {
	t.Parallel()
	erp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/bad") {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = fmt.Fprintf(w, `{"order":17,"token":"abc","you":%q}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(erp.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cr3t-4711"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, text string) {
		t.Helper()
		t.Parallel()
		c := parse(t, fmt.Sprintf("audit: {content: summary}\ndestinations: {erp: {call: {url: %q, auth: {bearer: {file: %q}}}}}\n%s", erp.URL+"/{endpoint}", secret, text))
		url := serve(t, c)
		a, err := client.New(url, "")
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for id, want := range map[string][]string{
			"good": {"CachedCall Submitted", "CachedCall Attempted", "CachedCall Delivered"},
			"bad":  {"CachedCall Submitted", "CachedCall Attempted", "CachedCall Failed"},
		} {
			if code, answer := ask(t, "POST", url+"/v1/messages", fmt.Sprintf(`{"id":%q,"destination":"erp","endpoint":%q,"payload":1}`, id, id)); code != 200 && code != 422 {
				t.Fatalf("%d %s", code, answer)
			}
			var got []string
			var list []api.AuditRecord
			waittest.Until(t, "the records are there", func() bool {
				got, list = trail(t, a, id)
				return slices.Equal(got, want)
			})
			for _, r := range list[1:] {
				if r.Response != `{"order":17,"token":"[redacted]","you":"Bearer [secret]"}` {
					t.Errorf("%s %s: %s", id, r.Status, r.Response)
				}
			}
		}
	}
	t.Run("SQLite", func(t *testing.T) { run(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { run(t, fmt.Sprintf("store: %q", pgtest.Shared(t).Database(t))) })
}

// A12: while the audit tables take nothing, deliveries and replies go on, and health and a counter tell. Afterwards each
// record is there, once and in order (NO-14).
func TestDeliveriesGoOnWhileTheAuditLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		c := parse(t, "")
		missed(t, c, func(away bool) (driver, source, stmt string) {
			stmt = `DROP TRIGGER away`
			if away {
				stmt = `CREATE TRIGGER away BEFORE INSERT ON hf_audit BEGIN SELECT RAISE(ABORT, 'away'); END`
			}
			return "sqlite", "file:" + filepath.Join(c.Data, "holdfast.db") + "?_pragma=busy_timeout(20000)", stmt
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.Shared(t).Database(t)
		c := parse(t, fmt.Sprintf("store: %q", dsn))
		missed(t, c, func(away bool) (driver, source, stmt string) {
			stmt = `DROP FUNCTION away CASCADE`
			if away {
				stmt = `CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''away''; END';
					CREATE TRIGGER away BEFORE INSERT ON hf_audit EXECUTE FUNCTION away()`
			}
			return "pgx", dsn, stmt
		})
	})
}

func missed(t *testing.T, c *config.Config, switching func(away bool) (driver, source, stmt string)) {
	t.Helper()
	t.Run("run", func(t *testing.T) { missAndCatchUp(t, serve(t, c), switching) })
	if !c.Store.IsZero() {
		c.Data = ""
	}
	r, err := node.VerifyAudit(context.WithoutCancel(t.Context()), c, nil, "", "")
	if err != nil || r.Status == audit.Broken {
		t.Errorf("%+v, %v", r, err)
	}
	// A5: old records verify after their table has got another column.
	driver, source, _ := switching(false)
	change(t, driver, source, "ALTER TABLE hf_audit ADD COLUMN later text")
	after, err := node.VerifyAudit(context.WithoutCancel(t.Context()), c, nil, "", "")
	if err != nil || after.Status != r.Status || after.Logs[0].Size != r.Logs[0].Size {
		t.Errorf("with another column: %+v, %v; before: %+v", after, err, r)
	}
}

func change(t *testing.T, driver, source, stmt string) {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err == nil {
		_, err = db.ExecContext(context.WithoutCancel(t.Context()), stmt)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// missAndCatchUp keeps the audit log of a node from being written for a while.
func missAndCatchUp(t *testing.T, url string, switching func(away bool) (driver, source, stmt string)) {
	t.Helper()
	a, err := client.New(url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	turn := func(away bool) {
		t.Helper()
		driver, source, stmt := switching(away)
		change(t, driver, source, stmt)
	}
	send := func(id string) {
		t.Helper()
		if code, answer := ask(t, "POST", url+"/v1/messages", fmt.Sprintf(`{"id":%q,"destination":"self","endpoint":"E","payload":1}`, id)); code != 202 {
			t.Fatalf("%d %s", code, answer)
		}
		waittest.Until(t, "it is delivered", func() bool {
			_, answer := ask(t, "GET", url+"/v1/messages/"+id, "")
			return strings.Contains(answer, `"state":"delivered"`)
		})
	}
	recorded := func(id string) []string {
		t.Helper()
		lines, _ := trail(t, a, id)
		return lines
	}
	// whole reports whether the course of a message is in the log: each attempt once, in order. On a slow machine a message may need another.
	whole := func(id string) bool {
		t.Helper()
		var got, want []string
		_, list := trail(t, a, id)
		for i := range list {
			if r := &list[i]; r.Kind == "MessageSend" {
				var of struct {
					Attempt int `json:"attempt"`
				}
				if err := json.Unmarshal(r.Extra, &of); err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(r.Status, " ", of.Attempt))
			}
		}
		var made struct {
			Tries int `json:"tries"`
		}
		_, answer := ask(t, "GET", url+"/v1/messages/"+id, "")
		if err := json.Unmarshal([]byte(answer), &made); err != nil || made.Tries == 0 {
			t.Fatal(answer, err)
		}
		for i := range made.Tries {
			want = append(want, fmt.Sprint("Attempted ", i+1))
		}
		want = slices.Concat([]string{"Enqueued 0"}, want, []string{fmt.Sprint("Delivered ", made.Tries)})
		if len(got) > len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		return slices.Equal(got, want)
	}
	send("before")
	waittest.Until(t, "it is recorded", func() bool { return whole("before") })
	turn(true)
	for i := range 3 {
		send(fmt.Sprint("during-", i))
	}
	waittest.Until(t, "the counter tells", func() bool {
		_, text := ask(t, "GET", url+"/metrics", "")
		_, health := ask(t, "GET", url+"/_rf/health", "")
		return strings.Contains(text, "\nholdfast_audit_write_failures_total ") && !strings.Contains(text, "\nholdfast_audit_write_failures_total 0") &&
			strings.Contains(health, "CentralAuditWriteFailures ") && !strings.Contains(health, "CentralAuditWriteFailures 0")
	})
	if got := recorded("during-0"); len(got) > 0 {
		t.Fatalf("the log was written all the same: %q", got)
	}
	turn(false)
	for i := range 3 {
		waittest.Until(t, "what was missed is recorded", func() bool { return whole(fmt.Sprint("during-", i)) })
	}
	send("after")
	waittest.Until(t, "it is recorded", func() bool { return whole("after") })
}

// A disk that is full keeps calls from being recorded, and nothing else. How many that were, and when, is a record, even if no
// other call comes.
func TestCallsThatCouldNotBeRecordedAreAGapOnRecord(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, c *config.Config, driver, source, full, room string) {
		t.Helper()
		t.Parallel()
		url := serve(t, c)
		a, err := client.New(url, "")
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		change(t, driver, source, full)
		for range 3 {
			if code, answer := ask(t, "POST", url+"/v1/destinations/self/pause", ""); code != 200 {
				t.Fatalf("%d %s", code, answer)
			}
		}
		if code, answer := ask(t, "POST", url+"/v1/messages", `{"id":"m","destination":"self","endpoint":"E","payload":1}`); code != 202 {
			t.Fatalf("%d %s", code, answer)
		}
		change(t, driver, source, room)
		var found []api.AuditRecord
		waittest.Until(t, "the gap is on record", func() bool {
			p, err := a.Audit().Query(t.Context(), client.AuditQuery{AuditFilter: api.AuditFilter{Kind: "Gap", Errors: true}})
			if err != nil {
				t.Fatal(err)
			}
			found = p.Records
			return len(found) > 0
		})
		var m audit.Missed
		if err := json.Unmarshal(found[0].Extra, &m); err != nil || len(found) != 1 || m.Calls != 3 || m.Since.IsZero() || m.Until.Before(m.Since) || time.Since(m.Since) > time.Hour {
			t.Errorf("%+v, %v: %s", m, err, found[0].Extra)
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		c := parse(t, "")
		run(t, c, "sqlite", "file:"+filepath.Join(c.Data, "holdfast.db")+"?_pragma=busy_timeout(20000)",
			`CREATE TRIGGER full BEFORE INSERT ON hf_entry WHEN NEW.kind = 23 BEGIN SELECT RAISE(ABORT, 'full'); END`, `DROP TRIGGER full`)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		dsn := pgtest.Shared(t).Database(t)
		run(t, parse(t, fmt.Sprintf("store: %q", dsn)), "pgx", dsn,
			`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''full'' USING ERRCODE = ''53100''; END';
				CREATE TRIGGER full_disk BEFORE INSERT ON hf_entry FOR EACH ROW WHEN (NEW.kind = 23) EXECUTE FUNCTION full_disk()`, `DROP FUNCTION full_disk CASCADE`)
	})
}
