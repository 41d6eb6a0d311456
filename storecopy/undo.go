package storecopy

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Undo reverses a move whose target was not used. Nodes can then use the source again, and refuse
// the target. At no moment can they open both. If nodes have used the target, it returns ErrUsed.
// target is nil if the target is lost; then the caller must make sure that nobody uses it. An
// interrupted Undo may be repeated. from is for people.
func Undo(ctx context.Context, source, target Source, from string) (Moved, error) {
	here, err := source.Origin(ctx)
	if err != nil {
		return Moved{}, fmt.Errorf("read source: %w", err)
	}
	if here.Moved == nil {
		return Moved{}, fmt.Errorf("%s was not moved: %w", from, holdfast.ErrNotFound)
	}
	if target != nil {
		if err := giveUp(ctx, target, &here, from); err != nil {
			return Moved{}, err
		}
	}
	return *here.Moved, source.Unmark(ctx)
}

// giveUp makes nodes refuse the target.
func giveUp(ctx context.Context, target Source, source *Origin, from string) error {
	there, err := target.Origin(ctx)
	if err != nil {
		return fmt.Errorf("read target: %w", err)
	}
	switch {
	case there.Store != source.Moved.Store || there.Copy == nil || there.Copy.Store != source.Store:
		return fmt.Errorf("%w, but to %s at %s", ErrElsewhere, source.Moved.To, source.Moved.At)
	case there.Moved != nil && there.Moved.Store == source.Store:
		return nil // by an earlier, interrupted call
	case there.Moved != nil:
		return fmt.Errorf("the target: %w", there.Moved.refusal())
	case !there.Copy.Done:
		return nil // nodes refuse it already: the copy has not released it
	case there.Use != there.Copy.Ended:
		return fmt.Errorf("%w: keep using it; the way back is a copy from there into a new folder or an empty database", ErrUsed)
	}
	if err := target.Mark(ctx, Moved{To: from, Store: source.Store, At: time.Now().UTC().Format(time.RFC3339)}); err != nil {
		return fmt.Errorf("mark the target: %w", err)
	}
	return nil
}
