package notificaties_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/notificaties"
)

// Whatever a client sends, it is told a bounded number of faults, which quote little of it.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	d := zaken(t, nil)
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf(`"a%d":{}`, i))
	}
	for _, kenmerken := range []string{strings.Join(many, ","), `"` + strings.Repeat("k", 500_000) + `":{}`} {
		got := d.post("notificaties", message(kenmerken))
		var p notificaties.Problem
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != http.StatusBadRequest || len(p.InvalidParams) == 0 || len(got.body) > 10_000 || len(p.Error()) > 10_000 {
			t.Errorf("got %d, %d faults, %d bytes, %v", got.status, len(p.InvalidParams), len(got.body), err)
		}
	}
	const ones = `{"callbackUrl":"http://127.0.0.1/","auth":"x","kanalen":[%s],"cloudeventFilters":[%[1]s]}`
	long := strings.TrimSuffix(strings.Repeat("1,", fanout.MaxGroups+1), ",")
	d.post("abonnement", fmt.Sprintf(ones, long)).want(t, http.StatusBadRequest, "cloudeventFilters/max_length", "kanalen/max_length")
}
