package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// longestTest bounds a test: an adapter's own limits are shorter.
const longestTest = 5 * time.Minute

// Resume makes a held channel go on at once.
func (s Channels) Resume(ctx context.Context, name string) (out api.Channel, err error) {
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	c, ok := book.Channels[name]
	if !ok {
		return out, noChannel(name, &book)
	}
	switch err := s.Channels.Resume(ctx, name); {
	case errors.Is(err, holdfast.ErrNotFound):
		return out, noChannel(name, &book)
	case errors.Is(err, holdfast.ErrState):
		return out, api.WrongState.Problem(fmt.Sprintf("channel %s is disabled; enable it instead", name),
			api.Fault{Field: "disabled", Value: "true", Problem: "is set, so there is nothing to resume"})
	case err != nil:
		return out, s.refuse(ctx, "resume the channel", err)
	}
	s.noted(ctx, "channel resumed by a person", slog.String("channel", name))
	return s.show(&c), nil
}

// Test sends a test notification. If the channel refuses it, that is not an error: the result says so.
func (s Channels) Test(ctx context.Context, name string, req *api.TestRequest, wrong ...api.Fault) (out api.TestResult, err error) {
	if faults := slices.Concat(wrong, checkLine("address", req.Address, mostAddress)); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	book, p := s.book(ctx)
	if p != nil {
		return out, p
	}
	c, ok := book.Channels[name]
	if !ok {
		return out, noChannel(name, &book)
	}
	if wrong := addressFaults("address", req.Address, s.Channels.CheckRecipient(c, req.Address)); len(wrong) > 0 {
		return out, api.Faulty(wrong...)
	}
	ctx, cancel := context.WithTimeout(ctx, longestTest)
	defer cancel()
	report, err := s.Channels.Test(ctx, name, req.Address)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return out, noChannel(name, &book)
	case err != nil:
		return out, s.refuse(ctx, "test the channel", err)
	}
	s.noted(ctx, "channel tested", slog.String("channel", name))
	return testResultOf(report), nil
}
