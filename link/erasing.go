package link

import (
	"context"
	"log/slog"

	"github.com/holdfast-mq/holdfast/audit"
)

// Erasing carries erasures of the audit log to the other end, and does those of the other end. audit.Sharing implements it.
// Its methods may be called concurrently.
type Erasing interface {
	// Told takes what a peer says, a site or Uplink, and returns what is done of what it asks.
	Told(ctx context.Context, peer string, in *audit.Erasures) (done []audit.Gone, err error)
	// Tell returns what a peer is to erase.
	Tell(ctx context.Context, peer string) ([]audit.Gone, error)
}

// erase exchanges erasures with a site. What fails comes with the next question.
func (c *Central) erase(ctx context.Context, site string, in *shipment) *audit.Erasures {
	if c.conf.Erasing == nil || in.Batch != nil || in.Erasures == nil {
		return nil
	}
	done, err := c.conf.Erasing.Told(ctx, site, in.Erasures)
	out := audit.Erasures{Done: done}
	if err == nil {
		out.Erase, err = c.conf.Erasing.Tell(ctx, site)
	}
	if err != nil {
		c.few.LogAttrs(ctx, slog.LevelWarn, "erasures of a site's audit log not exchanged", slog.String("site", site), slog.Any("error", err))
	}
	return &out
}

// erasures returns what a question tells central of: what it is to erase, and what is done of what it asked for.
func (h *shipper) erasures(ctx context.Context) (*audit.Erasures, error) {
	if h.site.conf.Erasing == nil {
		return nil, nil //nolint:nilnil // this site exchanges none
	}
	list, err := h.site.conf.Erasing.Tell(ctx, Uplink)
	return &audit.Erasures{Erase: list, Done: h.done}, err
}

// erased takes what central has answered, and reports whether there is more to say now. An answer that is lost comes again.
func (h *shipper) erased(ctx context.Context, answer *audit.Erasures) (more bool) {
	h.done = nil
	if answer == nil {
		return false
	}
	done, err := h.site.conf.Erasing.Told(ctx, Uplink, answer)
	if err != nil {
		h.site.log.WarnContext(ctx, "erasures of the audit log not exchanged with central; they come again", slog.Any("error", err))
	}
	h.done = done
	return len(done) > 0 || len(answer.Done) > 0 || audit.Places(answer.Erase) == audit.MostShared
}
