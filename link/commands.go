package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

const (
	// remembered is the number of commands whose answers a site keeps.
	remembered = 256
	// maxAnswer limits the bytes of one answer, and of a batch of answers.
	maxAnswer = 3 << 20
)

// answerCache keeps the answers to the last commands. A command whose answer was lost comes again;
// the cache keeps it from being done twice.
type answerCache struct {
	answers []Answer // oldest first
	size    int      // bytes of all bodies
}

func (m *answerCache) get(id string) (Answer, bool) {
	for _, a := range m.answers {
		if a.ID == id {
			return a, true
		}
	}
	return Answer{}, false
}

func (m *answerCache) put(a Answer) {
	m.answers = append(m.answers, a)
	m.size += len(a.Body)
	for len(m.answers) > remembered || m.size > 2*maxAnswer {
		m.size -= len(m.answers[0].Body)
		m.answers = slices.Delete(m.answers, 0, 1)
	}
}

// runCommands does the commands one after the other and sends the answers. An error means that
// central does not have all answers; central then sends the commands again.
func (s *Site) runCommands(ctx context.Context, commands []Command) error {
	commands = commands[:min(len(commands), maxOrders)]
	for i := range commands {
		if err := commands[i].check(); err != nil {
			return err // a command with a bad id is neither kept nor answered
		}
	}
	var batch answers
	var size int // of the bodies
	flush := func() error {
		if len(batch.Answers) == 0 {
			return nil
		}
		err := s.ask(ctx, AnswersPath, answerWait, batch, &struct{}{})
		batch.Answers, size = nil, 0
		return err
	}
	for _, c := range commands {
		a := s.once(ctx, &c)
		if size+len(a.Body) > maxAnswer {
			if err := flush(); err != nil {
				return err
			}
		}
		batch.Answers = append(batch.Answers, a)
		size += len(a.Body)
	}
	return flush()
}

// once does a command unless it has been done. Only one poll runs at a time, so no two commands run
// concurrently.
func (s *Site) once(ctx context.Context, c *Command) Answer {
	if a, ok := s.done.get(c.ID); ok {
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, askedWait)
	defer cancel()
	v, err := s.do(ctx, c)
	a := Answer{ID: c.ID}
	if err == nil {
		a.Body, err = json.Marshal(v)
	}
	switch {
	case err != nil:
		a.Body, a.Problem, a.Text = nil, problemOf(err), shown.Line(err.Error(), 500)
	case len(a.Body) > maxAnswer:
		a.Body, a.Problem, a.Text = nil, problemTooLarge, fmt.Sprintf("the answer has %d bytes; look at the message at the site itself", len(a.Body))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "command of central", slog.String("verb", shown.Line(string(c.Verb), 20)), slog.String("message_id", shown.Line(string(c.Message), 128)),
		slog.String("actor", shown.Line(c.Actor, 128)), slog.String("problem", a.Problem))
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return a // not remembered: the store's outcome is unknown, so a repeated command is tried again
	}
	s.done.put(a)
	return a
}

var errUnknownCommand = errors.New("this site does not know the command; its program is older than central's")

func (s *Site) do(ctx context.Context, c *Command) (any, error) {
	out := s.conf.Outbox
	switch c.Verb {
	case List:
		return s.list(ctx, c)
	case Show:
		id, err := holdfast.ParseID(string(c.Message))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
		}
		r, err := out.Get(ctx, id)
		return s.recordOf(&r), err
	case Retry:
		r, err := out.Requeue(ctx, c.Message, holdfast.Requeue{TTL: c.TTL, Force: c.Force, Actor: actorOf(c)})
		return s.bare(&r), err
	case Discard:
		r, err := out.Discard(ctx, c.Message, actorOf(c))
		return s.bare(&r), err
	case Reschedule:
		r, err := out.Reschedule(ctx, c.Message, holdfast.Reschedule{In: c.In, Actor: actorOf(c)})
		return s.bare(&r), err
	}
	return nil, errUnknownCommand
}

func (s *Site) list(ctx context.Context, c *Command) (any, error) {
	states := c.States
	if len(states) == 0 && !c.Held {
		states = []holdfast.State{holdfast.Parked}
	}
	p, err := s.conf.Outbox.List(ctx, holdfast.Query{States: states, Destination: c.Destination, Held: c.Held, After: c.After, Limit: c.Limit})
	if err != nil {
		return nil, err
	}
	list := page{Records: make([]record, len(p.Records)), Next: p.Next}
	for i := range p.Records {
		list.Records[i] = s.bare(&p.Records[i])
	}
	return list, nil
}

// bare returns a record without payload and history.
func (s *Site) bare(r *holdfast.Record) record {
	one := *r
	one.Message.Payload, one.History = nil, nil
	return s.recordOf(&one)
}

// recordOf returns the record with the category of its destination, which only this site knows.
func (s *Site) recordOf(r *holdfast.Record) record {
	out := recordOf(r)
	if s.conf.Category != nil {
		out.Category = s.conf.Category(out.Destination)
	}
	return out
}

// actorOf returns the actor for the message's history.
func actorOf(c *Command) string {
	const from = "central:"
	return from + strings.TrimSpace(shown.Line(c.Actor, 100))
}

func problemOf(err error) string {
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return problemNotFound
	case errors.Is(err, holdfast.ErrState):
		return problemState
	case errors.Is(err, holdfast.ErrInvalid):
		return problemInvalid
	case errors.Is(err, errUnknownCommand):
		return problemUnknown
	case errors.Is(err, holdfast.ErrDiskFull):
		return problemDiskFull
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrUnknown), errors.Is(err, holdfast.ErrClosed),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problemUnavailable
	}
	return problemFailed
}
