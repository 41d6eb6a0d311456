package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/bulk"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/web"
)

// many returns pages with bulk actions and parked notifications, and run, which does actions until one ends.
func many(t *testing.T, parked int) (n *notices, run func(id string)) {
	t.Helper()
	var service *admin.Service
	n = tells(t, api.Everything(), func(_ *web.Settings, s *admin.Service) {
		db, err := sqlite.Open(t.Context(), t.TempDir()+"/bulk.db", sqlite.Options{})
		must(t, err)
		t.Cleanup(func() { _ = db.Close() })
		s.Bulks, service = nodestore.New(db, nil).Bulks, s
	})
	for i := range parked {
		n.told(t, holdfast.ID(fmt.Sprintf("n%03d", i)), "Pump is hot", holdfast.Parked, "mail")
	}
	return n, func(id string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		runner := &bulk.Runner{Store: service.Bulks, Do: admin.Bulk{Service: service}.Do, Holder: "node", Every: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = runner.Run(ctx)
		}()
		for ctx.Err() == nil {
			if a, err := (admin.Bulk{Service: service}).Get(ctx, id); err == nil && a.Ended != nil {
				break
			}
		}
		cancel()
		<-ended
	}
}

// bulk sends the form of a new action.
func (n *notices) bulk(t *testing.T, form string) *httptest.ResponseRecorder {
	t.Helper()
	return n.post(t, "/ui/bulk", form+"&action="+string(holdfast.NewID()))
}

// A form that is sent twice is one action, also when the first has done all its rows. The id is one of ours.
func TestABulkFormIsSentTwice(t *testing.T) {
	t.Parallel()
	n, run := many(t, 2)
	page := body(t, n.get(t, "/ui/bulk/new?of=notifications&verb=retry&status=parked"))
	m := regexp.MustCompile(`name="action" value="([0-9a-f-]{36})"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the form has no id")
	}
	form := "of=notifications&verb=retry&status=parked&action=" + m[1]
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if w := n.post(t, "/ui/bulk", form); w.Code != http.StatusSeeOther {
				t.Errorf("two at once: status %d", w.Code)
			}
		})
	}
	both.Wait()
	for range 2 {
		w := n.post(t, "/ui/bulk", form)
		if to, _, _ := strings.Cut(w.Header().Get("Location"), "?"); w.Code != http.StatusSeeOther || to != "/ui/bulk/"+m[1] {
			t.Fatalf("status %d to %s", w.Code, to)
		}
		run(m[1])
		must(t, n.memory.Change("n000", func(r *holdfast.Record) { r.State = holdfast.Parked })) // it has failed at once
	}
	if got := n.state(t, "n000"); got != "parked" {
		t.Errorf("it was retried twice: %s", got)
	}
	for _, id := range []string{"", "x", strings.ToUpper(m[1]), "00000000-0000-4000-8000-000000000000"} {
		wantStatus(t, n.post(t, "/ui/bulk", "of=notifications&verb=retry&status=parked&action="+id).Code, http.StatusUnprocessableEntity)
	}
}

// begun returns the id of the action that a form began.
func begun(t *testing.T, n *notices, form string) string {
	t.Helper()
	w := n.bulk(t, form)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("status %d: %s", w.Code, body(t, w))
	}
	to, err := url.Parse(w.Header().Get("Location"))
	must(t, err)
	return strings.TrimPrefix(to.Path, "/ui/bulk/")
}

// U4, U18: the list leads to its filter's rows, which are counted; more than a hundred are confirmed by typing how
// many they are; the action is done in the background, and its page says what became of each row.
func TestABulkActionIsCountedConfirmedAndDone(t *testing.T) {
	t.Parallel()
	n, run := many(t, 102)
	n.told(t, "d1", "Pump is hot", holdfast.Delivered, "mail")
	list := body(t, n.get(t, "/ui/notifications?channel=mail&subject=pump"))
	wants(t, list, "All that these filters find", "/ui/bulk/new?channel=mail&amp;of=notifications&amp;subject=pump&amp;verb=retry")

	page := body(t, n.get(t, "/ui/bulk/new?of=notifications&verb=retry&channel=mail&status=parked,delivered"))
	wants(t, page, "102 can be retried", "1 are skipped", "no: skipped", "channel: mail", "Type how many rows these are, 103")
	const form = "of=notifications&verb=retry&channel=mail&status=parked,delivered"
	for typed, says := range map[string]string{"": "type 103", "102": "type 103"} {
		w := n.bulk(t, form+"&confirm="+typed)
		wantStatus(t, w.Code, http.StatusUnprocessableEntity)
		wants(t, body(t, w), "Not done", says)
	}
	if n.state(t, "n000") != "parked" {
		t.Fatal("it was done without a confirmation")
	}
	id := begun(t, n, form+"&confirm=103&reason=mended")
	page = body(t, n.get(t, "/ui/bulk/"+id+"?done=begun"))
	wants(t, page, "running", "0</strong> of 103 done", "/ui/bulk/"+id+"/pause", "/ui/bulk/"+id+"/cancel", "mended", "channel: mail", id)
	run(id)
	page = body(t, n.get(t, "/ui/bulk/"+id))
	wants(t, page, "102</strong> of 103 done, 1 skipped", "/ui/notifications/n000?site=north", "More rows")
	wantsNone(t, page, "/pause", "/cancel")
	wants(t, body(t, n.get(t, "/ui/bulk/"+id+"?after=50")), "n050", "First rows")
	wants(t, body(t, n.get(t, "/ui/bulk/"+id+"?after=100")), "skipped", "is delivered")
	wants(t, body(t, n.get(t, "/ui/bulk")), "/ui/bulk/"+id, "retry notifications", "done")
	if n.state(t, "n000") != "pending" || n.state(t, "d1") != "delivered" {
		t.Errorf("got %s and %s", n.state(t, "n000"), n.state(t, "d1"))
	}
	if e := n.calls.list[len(n.calls.list)-1]; e.Code != "add-bulk" || !strings.Contains(string(e.Detail), id) || !strings.Contains(string(e.Detail), "mended") {
		t.Errorf("the audit log has %s %s", e.Code, e.Detail)
	}
}

// A discard needs its reason. The first so many need no typing (U7), and only they are done.
func TestABulkDiscardNeedsAReason(t *testing.T) {
	t.Parallel()
	n, run := many(t, 101)
	const form = "of=notifications&verb=discard&status=parked&first=2&rate=1000"
	w := n.bulk(t, form)
	wantStatus(t, w.Code, http.StatusUnprocessableEntity)
	wants(t, body(t, w), "is missing: say why", `value="2"`, `value="1000"`)
	for _, wrong := range []string{"first=-1", "rate=many", "first=0"} {
		w := n.bulk(t, "of=notifications&verb=discard&status=parked&reason=x&"+wrong)
		wantStatus(t, w.Code, http.StatusUnprocessableEntity)
		wants(t, body(t, w), "must be a whole number above zero")
	}
	id := begun(t, n, form+"&reason=over")
	wants(t, body(t, n.get(t, "/ui/bulk/"+id)), "1\u2009000 a second at most", "only the newest 2")
	run(id)
	if n.state(t, "n100") != "discarded" || n.state(t, "n099") != "discarded" || n.state(t, "n098") != "parked" {
		t.Errorf("got %s, %s and %s", n.state(t, "n100"), n.state(t, "n099"), n.state(t, "n098"))
	}
}

// An action is paused, resumed and cancelled; what was not done stays.
func TestABulkActionIsHeldAndCancelled(t *testing.T) {
	t.Parallel()
	n, _ := many(t, 3)
	id := begun(t, n, "of=notifications&verb=retry&status=parked")
	move := func(verb, done string) {
		t.Helper()
		w := n.post(t, "/ui/bulk/"+id+"/"+verb, "")
		wantStatus(t, w.Code, http.StatusSeeOther)
		if to := w.Header().Get("Location"); to != "/ui/bulk/"+id+"?done="+done {
			t.Errorf("%s leads to %s", verb, to)
		}
	}
	move("pause", "paused")
	wants(t, body(t, n.get(t, "/ui/bulk/"+id)), "paused", "/ui/bulk/"+id+"/resume", "holdfast bulk resume "+id)
	move("resume", "resumed")
	wants(t, body(t, n.get(t, "/ui/bulk/"+id+"/cancel")), "Cancel this bulk action?", "3 rows stay as they are")
	move("cancel", "cancelled")
	wants(t, body(t, n.get(t, "/ui/bulk/"+id)), "cancelled", "3 left as they are")
	w := n.post(t, "/ui/bulk/"+id+"/resume", "")
	wantStatus(t, w.Code, http.StatusConflict)
	wants(t, body(t, w), "Not done", "is cancelled")
	wantStatus(t, n.get(t, "/ui/bulk/none").Code, http.StatusNotFound)
	wants(t, body(t, n.get(t, "/ui/bulk/new?of=notifications&verb=retry&status=discarded")), "It finds nothing")
	w = n.get(t, "/ui/bulk/new?of=nonsense&verb=explode")
	wantStatus(t, w.Code, http.StatusUnprocessableEntity)
}

// U4: of a notification with several copies, only those are done that the filter finds.
func TestABulkActionLeavesOtherCopiesAlone(t *testing.T) {
	t.Parallel()
	n, run := many(t, 0)
	n.told(t, "n1", "Pump is hot", holdfast.Parked, "mail", "phone")
	n.told(t, "n2", "Pump is hot", holdfast.Parked, "mail", "phone")
	must(t, n.memory.Change("n2.phone", func(r *holdfast.Record) { r.State = holdfast.Parked }))
	first := begun(t, n, "of=notifications&verb=discard&status=parked&subject=hot&reason=over&channel=mail")
	second := begun(t, n, "of=notifications&verb=discard&status=parked&reason=over")
	wantStatus(t, n.post(t, "/ui/bulk/"+second+"/pause", "").Code, http.StatusSeeOther)
	run(first)
	for id, want := range map[holdfast.ID]string{"n1": "discarded", "n1.phone": "pending", "n2": "discarded", "n2.phone": "parked"} {
		if got := n.state(t, id); got != want {
			t.Errorf("by channel: %s is %s, want %s", id, got, want)
		}
	}
	wantStatus(t, n.post(t, "/ui/bulk/"+second+"/resume", "").Code, http.StatusSeeOther)
	run(second)
	for id, want := range map[holdfast.ID]string{"n1.phone": "pending", "n2.phone": "discarded"} {
		if got := n.state(t, id); got != want {
			t.Errorf("by status: %s is %s, want %s", id, got, want)
		}
	}
	wants(t, body(t, n.get(t, "/ui/bulk/"+second)), "notification n1 is pending; it was to be done to what is parked")
}
