package holdfast

import (
	"context"
	"fmt"
	"slices"
)

// Bundler writes a parent, such as a notification or an event, and the messages that come
// of it as one. It is safe for concurrent use.
type Bundler interface {
	// Bundle writes each bundle with all that belongs to it, or nothing of it. It returns one
	// result each, in order: a Duplicate with the present state where one of the same
	// name has the same hash; ErrConflict where the hash is another one, or where another
	// message has one of the ids; ErrInvalid for what no store takes. An error of the call
	// writes nothing. It returns after all is on disk; calls share commits.
	Bundle(ctx context.Context, list ...Bundle) ([]Result, error)
}

// Bundle is a parent and its messages. Kind, Source and ID together are its name. The
// store keeps it as long as its feature keeps what it has written beside the messages (Rows).
type Bundle struct {
	// Kind says what the parent is. Each feature has its own.
	Kind string
	// Source is who has sent the parent. Empty: the store's own name.
	Source string
	ID     ID
	// Hash is of what may not change under one name.
	Hash [32]byte
	// Payload is that of the parent and of each message. It is kept once.
	Payload []byte
	// Parent is what the feature keeps beside the bundle itself. The store sets its number,
	// which is that of the bundle. Nil: nothing.
	Parent Row
	// Messages are one or more, or none if there is a Parent. Their Payload must be nil: they
	// have that of the bundle.
	Messages []Message
	// Rows are what the feature keeps beside the messages, one for each, in order. The
	// store sets its number, which is that of the message, and the number of the bundle.
	Rows []Row
}

// Normalize returns the bundle as a store keeps it: with canonical ids, and with
// source and payload in each message. It returns ErrInvalid for what no
// store takes. Stores call it first; the bundle itself stays as it is.
func (b *Bundle) Normalize(source string) (Bundle, error) {
	n := *b
	if n.Source == "" {
		n.Source = source
	}
	if err := n.check(); err != nil {
		return Bundle{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	n.ID, _ = ParseID(string(b.ID)) // checked
	n.Messages = slices.Clone(b.Messages)
	for i := range n.Messages {
		n.Messages[i].Payload = n.Payload
	}
	if err := Normalize(source, n.Messages); err != nil {
		return Bundle{}, err
	}
	seen := make(map[ID]bool, len(n.Messages))
	for i := range n.Messages {
		id := n.Messages[i].ID
		if seen[id] {
			return Bundle{}, fmt.Errorf("%w: %w", ErrInvalid, &FieldError{Field: "messages.id", Value: string(id), Problem: "is that of two messages"})
		}
		seen[id] = true
	}
	return n, nil
}

func (b *Bundle) check() error {
	if err := checkName("kind", b.Kind); err != nil {
		return err
	}
	if err := checkName("source", b.Source); err != nil {
		return err
	}
	if _, err := ParseID(string(b.ID)); err != nil {
		return err
	}
	switch n := len(b.Messages); {
	case n == 0 && b.Parent == nil:
		return &FieldError{Field: "messages", Value: "0", Problem: "must be at least one"}
	case n != len(b.Rows):
		return &FieldError{Field: "rows", Value: fmt.Sprint(len(b.Rows)), Problem: fmt.Sprintf("must be one for each of the %d messages", n)}
	}
	for i := range b.Messages {
		if b.Messages[i].Payload != nil {
			return &FieldError{Field: "messages.payload", Value: fmt.Sprint(len(b.Messages[i].Payload), " bytes"), Problem: "must be empty: messages have the payload of their bundle"}
		}
	}
	return nil
}
