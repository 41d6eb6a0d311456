package fanout_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

// An abonnement has room for as many groups as the guide says, with long values; one more is refused.
func TestAnAbonnementHasRoomForItsGroups(t *testing.T) {
	t.Parallel()
	a := fanout.Abonnement{Owner: "portal"}
	for i := range 257 {
		s := fanout.Subscription{ID: "a", Topics: []string{"*"}}
		if err := s.Ask(&a); i > 254 && err != nil {
			t.Errorf("%d groups: %v", i, err)
		}
		value := "https://catalogi.example.nl/" + strings.Repeat("z", 700) + fmt.Sprint(i)
		a.Kanalen = append(a.Kanalen, fanout.FilterGroup{Naam: "zaken", Filters: map[string]string{"zaaktype": value}})
	}
	if err := new(fanout.Subscription).Ask(&a); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("257 groups: %v, want ErrInvalid", err)
	}
}
