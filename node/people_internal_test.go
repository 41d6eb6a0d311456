package node

import (
	"context"
	"testing"

	"github.com/holdfast-mq/holdfast/people"
)

// behind is a store in which a person is added behind each look.
type behind struct {
	people.Store

	added func()
}

func (l behind) EachPerson(context.Context, func(p *people.Person)) error {
	l.added()
	return nil
}

func TestAPersonAddedBehindALookCloses(t *testing.T) {
	t.Parallel()
	var p peopled
	if err := p.look(t.Context(), behind{added: p.added}); err != nil || !p.are.Load() {
		t.Errorf("people %t, %v; want them", p.are.Load(), err)
	}
	if err := p.look(t.Context(), behind{added: func() {}}); err != nil || p.are.Load() {
		t.Errorf("people %t, %v; want none", p.are.Load(), err)
	}
}
