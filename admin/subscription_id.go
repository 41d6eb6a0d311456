package admin

import (
	"context"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// unused refuses the id of a deleted subscription while messages to it wait for an attempt or a decision: they
// would go to the new one, whose author may have nothing to do with their topics.
func (s Subscriptions) unused(ctx context.Context, id string) error {
	page, err := s.Outbox.List(ctx, holdfast.Query{
		States: []holdfast.State{holdfast.Pending, holdfast.Claimed, holdfast.Parked, holdfast.Expired}, Destination: fanout.Lane(id), Limit: 1,
	})
	if err != nil {
		return s.refuse(ctx, "look for messages of a former subscription", err)
	}
	if len(page.Records) == 0 {
		return nil
	}
	return api.Conflict.Problem(fmt.Sprintf("messages of a deleted subscription %s still wait: take another id; or look with: holdfast messages ls --destination %s, and discard them",
		api.Clip(id), shellWord(fanout.Lane(api.Clip(id)))), api.Fault{Field: "id", Value: api.Clip(id), Problem: "is that of a deleted subscription whose messages wait"})
}
