package nodestore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A large directory that somebody changes all the time is read at the first try, and as it was at one moment:
// all ingests of notifications wait for it.
func TestADirectoryThatChangesIsRead(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	book := nodestore.New(db, nil).Directory
	list := notify.List{Name: "all"}
	for i := range 5000 {
		list.Recipients = append(list.Recipients, notify.Recipient{Channel: "mail", Address: fmt.Sprintf("p%d@example.org", i)})
	}
	if err := book.PutList(t.Context(), list, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	changing, changes := sync.WaitGroup{}, make(chan struct{})
	changing.Go(func() {
		defer close(changes)
		for i := 0; ctx.Err() == nil; i++ {
			c := notify.Channel{Name: fmt.Sprintf("c%d", i), Kind: "email", Settings: []byte(`{}`), Retry: notify.DefaultRetry()}
			if err := book.PutChannel(ctx, c, ""); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
				return
			}
			select {
			case changes <- struct{}{}:
			default:
			}
		}
	})
	for range 10 {
		<-changes
		b, err := book.Directory(t.Context())
		if err != nil || len(b.Lists["all"].Recipients) != 5000 {
			t.Errorf("%d recipients, %v", len(b.Lists["all"].Recipients), err)
		}
		// The list was the first change, each channel is one more.
		if int(b.Version) != 1+len(b.Channels) {
			t.Errorf("version %d with %d channels: they are not of one moment", b.Version, len(b.Channels))
		}
	}
	cancel()
	changing.Wait()
}
