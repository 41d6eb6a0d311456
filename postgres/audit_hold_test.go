package postgres_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	auditlog "github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/postgres"
	hfrows "github.com/holdfast-mq/holdfast/rows"
)

// A purge and an erasure that meet a hold wait for its end, and heed it. Two holds are made one after the other.
func TestHoldsThatAreMadeMeanwhile(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	a := nodestore.New(opened(t, dsn, postgres.Options{Source: "s", Node: "n"}), nil).Audit
	log, err := a.OpenLog(t.Context(), "holdfast/s/n/1", true)
	if err == nil {
		err = sql(t.Context(), dsn, `UPDATE hf_audit_log SET size = 9`)
	}
	if err != nil {
		t.Fatal(err)
	}
	lock, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close(t.Context())
	exec := func(text string) {
		if _, err := lock.Exec(t.Context(), text); err != nil {
			t.Error(err)
		}
	}
	exec(`BEGIN`)
	exec(`SELECT log FROM hf_audit_log WHERE log > 0 ORDER BY log LIMIT 1 FOR UPDATE`)
	exec(`INSERT INTO hf_audit_hold (name, filter, reason, actor, since) VALUES ('case', '{}', 'r', 'anna', hf_now())`)
	var all sync.WaitGroup
	all.Go(func() {
		if done, err := a.Cut(t.Context(), log.Log, 5, auditlog.Hash{}, 0); done || err != nil {
			t.Errorf("cut: %v, %v", done, err)
		}
	})
	all.Go(func() {
		if _, err := a.EraseValues(t.Context(), log, &auditlog.Step{Places: []auditlog.Place{{Seq: 1, Field: "target"}}, Reason: "r", Actor: "anna"}); !errors.Is(err, auditlog.ErrHeld) {
			t.Errorf("erase: %v", err)
		}
	})
	all.Go(func() {
		if err := a.Hold(t.Context(), &auditlog.Hold{Name: "later", Reason: "r", Actor: "anna"}); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, dsn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`, 3)
	exec(`UPDATE hf_audit_hold SET since = hf_now() WHERE name = 'case'`)
	exec(`COMMIT`)
	all.Wait()
	list, err := a.Holds(t.Context())
	at := map[string]hfrows.Instant{}
	for i := range list {
		at[list[i].Name] = list[i].At
	}
	if err != nil || at["later"] <= at["case"] || at["case"] == 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
