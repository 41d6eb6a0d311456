package admin

import (
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// The ids of a narrowed listener's events do not tell how much the node does.
func TestANarrowedListenerIsNotToldHowMuchOthersDo(t *testing.T) {
	t.Parallel()
	one := &listener{scope: api.Scope{Destinations: []string{"a"}}, last: 4711, hints: map[string]*merged{}}
	one.add(api.HintDestination, "a")
	if list := one.take(); len(list) != 1 || list[0].ID != 1 || one.position() != 1 {
		t.Errorf("got %+v at position %d, want id 1", list, one.position())
	}
	one.scope = api.Scope{}
	one.add(api.HintDestination, "a")
	if list := one.take(); len(list) != 1 || list[0].ID != 4711 || one.position() != 4711 {
		t.Errorf("got %+v at position %d, want id 4711", list, one.position())
	}
}
