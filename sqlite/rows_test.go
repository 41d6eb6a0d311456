package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storetest"
)

// A salvage finds columns by their place, and a copy takes no more than is described.
func TestTheTablesAreDescribed(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	list, err := db.SQL(t.Context(), `SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name LIKE 'hf\_%' ESCAPE '\' ORDER BY m.name, c.cid`)
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string][]string{}
	for _, row := range list {
		table := fmt.Sprint(row[0])
		columns[table] = append(columns[table], fmt.Sprint(row[1]))
	}
	const name, copied = "a number that stands for a name", "a copy makes it anew"
	storetest.Described(t, columns, true, storetest.Undescribed{
		Parts: map[string]string{"hf_body": "hf_message", "hf_inbox_body": "hf_inbox"},
		Own: map[string]string{
			"hf_route": name, "hf_source": name, "hf_lane.lane": name, "hf_message.route": name, "hf_message.lane": name,
			"hf_meta.key": "settings are one row", "hf_meta.value": "settings are one row",
			"hf_follower": "a follower of one store's journal follows no other", "hf_message.revision": "claims of before do not come along",
			"hf_body.hash": copied, "hf_inbox.answer": copied,
		},
	})
}
