package notify_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
)

// Who makes a channel or a list at a node, and then sends to it there, finds it: also
// in the moment after the directory was read.
func TestTheBooksKnowAtOnceWhatIsChangedThroughThem(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) { // no time passes
		o := open(t)
		defer o.close(t)
		books := notify.NewDirectoryCache(nodestore.New(o.db, nil).Directory)
		store := books.Store()
		known := func(step string, channels, lists int) notify.Directory {
			t.Helper()
			book, err := books.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(book.Channels) != channels || len(book.Lists) != lists {
				t.Errorf("%s: %d channels and %d lists, want %d and %d", step, len(book.Channels), len(book.Lists), channels, lists)
			}
			return book
		}
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		known("at first", 0, 0)
		do(store.PutChannel(t.Context(), notify.Channel{Name: "mail", Kind: "mail"}, ""))
		known("a channel", 1, 0)
		do(store.PutList(t.Context(), notify.List{Name: "ops"}, ""))
		book := known("a list", 1, 1)
		do(store.DeleteList(t.Context(), "ops", book.Lists["ops"].Version, ""))
		known("the list's end", 1, 0)
		do(store.DeleteChannel(t.Context(), "mail", book.Channels["mail"].Version, ""))
		known("the channel's end", 0, 0)
	})
}
