package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// tokensOfTheDeleted makes tokens for subscribers while their subscriptions are deleted. None outlives its subscription, since
// another one may get the id.
func tokensOfTheDeleted(k *kit) {
	h := k.hub()
	made, refused := 0, 0
	for n := range 12 {
		id := fmt.Sprint("s", n)
		version := k.subscribes(h, id, 0, "{}")
		may := fmt.Sprintf(`{"rights":["portal"],"destinations":["subscription:%s"]}`, id)
		var both sync.WaitGroup
		both.Go(func() { k.ok(h.kept.DeleteSubscription(k.ctx(), id, version, "anna")) })
		both.Go(func() {
			switch err := k.CreateToken(k.ctx(), id, may, time.Hour, hash(n), "ben"); {
			case err == nil:
				made++
			case errors.Is(err, holdfast.ErrNotFound):
				refused++
			default:
				k.t.Error(err)
			}
		})
		both.Wait()
		k.fails(k.CreateToken(k.ctx(), id+"-late", may, time.Hour, hash(100+n), "ben"), holdfast.ErrNotFound)
		k.ok(k.EachToken(k.ctx(), func(name, _ string, _, _, _ time.Time, _ bool) { k.t.Errorf("token %s is left", name) }))
	}
	k.t.Logf("%d were made before the subscription was deleted, and %d refused", made, refused)
}
