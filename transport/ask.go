package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

// Ask posts in as JSON to another path of the peer and decodes the answer into out. It uses the
// connections and the credential of deliveries. Its error is a *holdfast.Failure; a refusal has the
// code that the peer gave.
func (c *Client) Ask(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return &holdfast.Failure{Outcome: holdfast.Permanent, Code: wire.CodeInvalid, Err: fmt.Errorf("ask %s: encode: %w", path, err)}
	}
	a, fail := c.post(ctx, c.base+path, wire.MessageType, body)
	if fail != nil {
		fail.Err = fmt.Errorf("ask %s: %w", path, fail.Err)
		return fail
	}
	if a.status < 200 || a.status > 299 {
		return c.refusalOf(a, path)
	}
	c.confirmClockBy(a)
	if err := json.Unmarshal(a.body, out); err != nil {
		return &holdfast.Failure{Code: CodeNoAck, MaybeDelivered: true, Err: fmt.Errorf("ask %s: the answer is not one of this protocol: %w", path, err)}
	}
	return nil
}

func (c *Client) refusalOf(a answer, path string) error {
	f := c.bare(a)
	if reply, ok := c.readReply(a.body); ok {
		if r, decided := reply.Result(""); decided && r.Err != nil {
			f = holdfast.AsFailure(r.Err)
			f.Err = errors.New(reply.Error)
		}
	}
	f.Err = fmt.Errorf("ask %s: %w", path, f.Err)
	return withHeaders(holdfast.Result{Err: f}, a).Err
}
