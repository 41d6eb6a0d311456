package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/storetest"
)

// A copy takes no more than is described.
func TestTheTablesAreDescribed(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	opened(t, dsn, postgres.Options{})
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	found, err := c.Query(t.Context(), `SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_name LIKE 'hf\_%' ORDER BY table_name, ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string][]string{}
	var table, column string
	if _, err := pgx.ForEachRow(found, []any{&table, &column}, func() error {
		columns[table] = append(columns[table], column)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	const name, claims, live = "a number that stands for a name", "claims of before do not come along", "it is of the nodes that run"
	storetest.Described(t, columns, false, storetest.Undescribed{
		Parts: map[string]string{"hf_queue": "hf_message", "hf_final": "hf_message", "hf_inbox_body": "hf_inbox", "hf_notification_end": "hf_notification"},
		Own: map[string]string{
			"hf_route": name, "hf_source": name, "hf_lane.lane": name, "hf_message.route": name, "hf_message.lane": name, "hf_queue.lane": name, "hf_final.lane": name,
			"hf_meta.key": "settings are one row", "hf_meta.value": "settings are one row",
			"hf_follower": "a follower of one store's journal follows no other", "hf_entry.tx": "the order of transactions is the database's own",
			"hf_queue.owner": claims, "hf_queue.claim": claims, "hf_queue.deaths": claims, "hf_queue.revision": claims,
			"hf_message.delay": "from created to start", "hf_node": live, "hf_tally": live, "hf_clock": "each store has its own; settings bring its leaps",
		},
	})
}
