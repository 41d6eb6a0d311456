package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast"
)

// What one claim may read is not spent on the backlog of other lanes: an alarm that
// came last is claimed with the first.
func TestABacklogOfLargePayloadsLeavesRoomForOtherLanes(t *testing.T) {
	t.Parallel()
	db := opened(t, database(t), quick("a"))
	payload := []byte(`"` + string(slices.Repeat([]byte("x"), 1<<20)) + `"`)
	slots := map[string]int{"alarm": 1}
	for l := range 3 {
		name := fmt.Sprint("d", l)
		slots[name] = 10
		for i := range 5 {
			put(t, db, holdfast.Message{ID: holdfast.ID(fmt.Sprint(name, "-", i)), Destination: name, Endpoint: "E", Payload: payload})
		}
	}
	put(t, db, holdfast.Message{ID: "alarm", Destination: "alarm", Endpoint: "E", Payload: []byte("{}")})
	batch, err := db.Claim(t.Context(), slots)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(batch.Claims, func(c holdfast.Claim) bool { return c.Message.ID == "alarm" }) || len(batch.Claims) > 11 {
		t.Errorf("claimed %d, and not the alarm", len(batch.Claims))
	}
}
