package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type testChannelInput struct {
	Name    string `path:"name" doc:"The channel's name."`
	Content body
}

type testChannelOutput struct{ Body api.TestResult }

// longestTest bounds a test: an adapter's own limits are shorter.
const longestTest = 5 * time.Minute

func (s *Server) resumeChannel(ctx context.Context, in *channelInput) (*channelOutput, error) {
	book, p := s.book(ctx)
	if p != nil {
		return nil, p
	}
	c, ok := book.Channels[in.Name]
	if !ok {
		return nil, noChannel(in.Name, &book)
	}
	switch err := s.Channels.Resume(ctx, in.Name); {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil, noChannel(in.Name, &book)
	case errors.Is(err, holdfast.ErrState):
		return nil, api.WrongState.Problem(fmt.Sprintf("channel %s is disabled; enable it instead", in.Name),
			api.Fault{Field: "disabled", Value: "true", Problem: "is in the way of resuming"})
	case err != nil:
		return nil, s.refuse(ctx, "resume the channel", err)
	}
	s.noted(ctx, "channel resumed by a person", slog.String("channel", in.Name))
	return s.channelAnswer(c), nil
}

func (s *Server) testChannel(ctx context.Context, in *testChannelInput) (*testChannelOutput, error) {
	var req api.TestRequest
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if faults = append(faults, checkLine("address", req.Address, mostAddress)...); len(faults) > 0 {
		return nil, api.Faulty(withoutRepeats(faults)...)
	}
	book, p := s.book(ctx)
	if p != nil {
		return nil, p
	}
	c, ok := book.Channels[in.Name]
	if !ok {
		return nil, noChannel(in.Name, &book)
	}
	if wrong := addressFaults("address", req.Address, s.Channels.CheckRecipient(c, req.Address)); len(wrong) > 0 {
		return nil, api.Faulty(wrong...)
	}
	ctx, cancel := context.WithTimeout(ctx, longestTest)
	defer cancel()
	report, err := s.Channels.Test(ctx, in.Name, req.Address)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil, noChannel(in.Name, &book)
	case err != nil:
		return nil, s.refuse(ctx, "test the channel", err)
	}
	s.noted(ctx, "channel tested", slog.String("channel", in.Name))
	return &testChannelOutput{testResultOf(report)}, nil
}
