package postgres_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// noPlans are constants that the server makes no plan of.
var noPlans = map[string]string{
	"insertHead": "a part", "payloadOf": "a part", "copiesOf": "a part", "insertTail": "a part", "claimGot": "a part", "backAgain": "a part", "settleHead": "a part", "recordColumns": "a part", "recordTables": "a part",
	"noteDelivered": "a part", "noteArrived": "a part", "lockJournal": "it has none", "discardedBy": "a part", "notificationStands": "a part", "notificationColumns": "a part", "lastsOf": "a part", "setAnew": "a part",
	"keptColumns": "a part, without the limit of the whole", "analyze": "reads a sample, after a copy",
}

// allowance is a scan of a table, or by an index, that needs no bound, and why.
type allowance struct{ statement, scan, why string }

var allowances = []allowance{
	{"renumber", "hf_entry", "it changes each row, once, where a dump was restored in another cluster"},
	{"exportEvents", "hf_entry_pkey", "a copy reads the whole journal, and passes over what is not a message's history"},
	{"reclaimDead", "hf_queue", "it reads the table, once for each death: readTables"},
	{"giveBackLost", "hf_queue", "it reads the table, once for each lost answer to a claim's commit: readTables"},
	{"giveBackAll", "hf_queue", "it reads the table, for a node that ends in doubt of what it has: readTables"},
	{"leaveNobody", "hf_queue", "it reads the table, once for each move: readTables"},
	{"claimSuspects", "hf_queue_suspect", "the index has only what was in hand when an owner died"},
	{"givenUp", "hf_queue_given_up", "it passes over what is in hand and was discarded this moment"},
	{"nextDue", "hf_queue_suspect", "EXISTS ends with the first entry, and all entries are such rows"},
	{"nextDue", "hf_queue_unplaced", "EXISTS ends with the first entry, and all entries are such rows"},
	{"expiredQueued", "hf_queue_expires", "it passes over what is in hand, which is little"},
	{"keptOf", "hf_inbox_kept", "it passes over what is kept for other endpoints"},
	{"waitingBySite", "hf_queue_due", "it counts what waits, by the lanes of channels"},
	{"parkedBySite", "hf_final_lane", "it counts what is parked, by the lanes of channels"},
	{"deliveredBySite", "hf_notification_end_settled", "it counts what was delivered within the window"},
	{"exportTotals", "hf_message", "a copy counts what it copies"},
	{"exportTotals", "hf_entry", "a copy counts what it copies"},
	{"exportTotals", "hf_inbox", "a copy counts what it copies"},
	{"exportTotals", "hf_notification", "a copy counts what it copies"},
	{"first hf_target", "hf_target_pkey", "it passes over what is nobody's, which is little"},
	{"later hf_target", "hf_target_pkey", "it passes over what is nobody's, which is little"},
}

// Every statement of the package finds its rows of the tables that grow by an
// index, or is ended by a limit, whatever the statistics say, and whether the
// server plans it for its values or for any.
func TestNoStatementReadsAWholeTable(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "the server plans each statement, on one connection after the other")
	all := sourceStatements(t)
	for name := range noPlans {
		if _, known := all[name]; !known {
			t.Errorf("there is no %s any more: take it from the list", name)
		}
		delete(all, name)
	}
	for name, text := range postgres.RowStatements() {
		all[name] = sourceStatement{"", text}
	}
	var mu sync.Mutex
	used := map[allowance]bool{}
	t.Run("statistics", func(t *testing.T) {
		for name, fill := range map[string][]string{
			"none":                      slices.Concat(lanes(), rows(1000, 40999)),
			"right ones":                slices.Concat(lanes(), rows(1000, 40999), []string{"ANALYZE"}),
			"of nearly empty tables":    slices.Concat(lanes(), rows(1000, 1000), []string{"ANALYZE"}, rows(1001, 40999)),
			"of rows that nobody has":   slices.Concat(lanes(), plainRows(), []string{"ANALYZE"}),
			"of rows that were settled": slices.Concat(lanes(), rows(1000, 40999), []string{"DELETE FROM hf_queue", "UPDATE hf_final SET state = 2", "ANALYZE"}, queueRows(1000, 40999)),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dsn := database(t)
				db := opened(t, dsn, postgres.Options{})
				if err := sql(t.Context(), dsn, slices.Concat(noAutovacuum(), fill)...); err != nil {
					t.Fatal(err)
				}
				for name, faults := range lookAtAll(t, db, dsn, all) {
					for _, f := range faults {
						at := slices.IndexFunc(allowances, func(a allowance) bool {
							return a.statement == name && (a.scan == f.relation || a.scan == f.index)
						})
						if at < 0 {
							t.Errorf("%s: %s", name, f.text)
							continue
						}
						mu.Lock()
						used[allowances[at]] = true
						mu.Unlock()
					}
				}
			})
		}
	})
	for _, a := range allowances {
		if !used[a] && !t.Failed() {
			t.Errorf("%s does not read %s without a bound any more: take its allowance away", a.statement, a.scan)
		}
	}
}

// lookAtAll looks at the plans on connections as the statements have them.
func lookAtAll(t *testing.T, db *postgres.DB, dsn string, all map[string]sourceStatement) map[string][]planFault {
	t.Helper()
	c, err := pgx.ConnectConfig(t.Context(), db.OwnConfig())
	own := newPlanner(t, c, err)
	c, err = postgres.MoveConn(t.Context(), dsn)
	move := newPlanner(t, c, err)
	c, err = pgx.Connect(t.Context(), dsn)
	look := newPlanner(t, c, err)
	if _, err := c.Exec(t.Context(), postgres.ReadOnlyFromHere, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	found := map[string][]planFault{}
	for name, s := range all {
		if !bigTables.MatchString(s.text) {
			continue
		}
		p := own
		switch s.file {
		case "statement_storecopy.go":
			p = move
		case "check_inspect.go":
			p = look
		}
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			faults, err := p.look(t.Context(), mode, s.text)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			found[name] = append(found[name], faults...)
		}
	}
	return found
}

// The check finds what it is there to find.
func TestAPlanThatReadsTooMuch(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "the server plans each statement, on one connection after the other")
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	if err := sql(t.Context(), dsn, slices.Concat(lanes(), rows(1000, 40999), []string{"ANALYZE"})...); err != nil {
		t.Fatal(err)
	}
	for statement, want := range map[string]string{
		`SELECT count(*) FROM hf_message`:                                               "no limit ends it",
		`SELECT seq FROM hf_queue WHERE owner = $1`:                                     "reads all of it",
		`DELETE FROM hf_queue WHERE lane = $1 AND lane > 0`:                             "no limit ends it",
		`SELECT kept FROM hf_inbox WHERE id = $1`:                                       "nothing is said of its first column",
		`SELECT seq FROM hf_message WHERE seq > $1 ORDER BY created LIMIT 5`:            "no limit ends it",
		`SELECT seq FROM hf_final WHERE seq > $1 AND failures = 7 ORDER BY seq LIMIT 9`: "throws away",
		`SELECT f.settled FROM hf_final AS f JOIN hf_message AS m USING (seq)`:          "no limit ends it",
		`SELECT $1::bigint WHERE $1 NOT IN (SELECT seq FROM hf_inbox_body)`:             "no limit ends it",
		`SELECT seq FROM hf_entry WHERE message = $1`:                                   "",
		`SELECT seq FROM hf_message WHERE seq > $1 ORDER BY seq LIMIT $2`:               "",
		`UPDATE hf_queue SET owner = 1 WHERE seq = ANY ($1::bigint[])`:                  "",
	} {
		found := lookAtAll(t, db, dsn, map[string]sourceStatement{"it": {"", statement}})["it"]
		if want == "" && len(found) > 0 {
			t.Errorf("%s: %s", statement, found[0].text)
		} else if want != "" && (len(found) == 0 || !strings.Contains(found[0].text, want)) {
			t.Errorf("%s: %v, want %q", statement, found, want)
		}
	}
}
