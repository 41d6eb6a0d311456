package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/notify"
)

func describer() *audit.Describer {
	return &audit.Describer{
		Site: "plant", Node: "n1", Incarnation: func(context.Context) (string, error) { return "inc", nil },
		Category: func(destination string) holdfast.Category {
			return map[string]holdfast.Category{
				"erp": holdfast.CategoryExternalSystem, "db": holdfast.CategoryCachedDBWrite, "central": holdfast.CategoryNotification,
			}[destination]
		},
	}
}

func described(t *testing.T, d *audit.Describer, page ...holdfast.Entry) []audit.Record {
	t.Helper()
	list, err := d.Describe(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// brief is what matters of a record, in a line.
func brief(r *audit.Record) string {
	line := []string{string(r.Channel), string(r.Kind), string(r.Status), r.Site, r.Actor, r.Target}
	for name, text := range map[string]string{"corr": r.Correlation, "error": r.Error} {
		if text != "" {
			line = append(line, name+"="+text)
		}
	}
	if len(line) == 8 && strings.HasPrefix(line[6], "error") {
		line[6], line[7] = line[7], line[6]
	}
	if r.HTTP != 0 {
		line = append(line, fmt.Sprint("http=", r.HTTP))
	}
	if r.Took != 0 {
		line = append(line, "took="+r.Took.String())
	}
	if len(r.Personal) > 0 {
		line = append(line, fmt.Sprint("sealed=", r.Personal))
	}
	return strings.Join(line, " ")
}

// Each kind of entry has its records (NO-13, SF-24, SF-26, SF-33).
func TestEveryEntryHasItsRecords(t *testing.T) {
	t.Parallel()
	took := 30 * time.Millisecond
	note := map[string]string{"hf-notification": "0198c0de-0000-7000-8000-000000000001", "hf-copies": "mail,chat"}
	site := &holdfast.About{Source: "plant", Headers: note}
	other := &holdfast.About{Source: "harbour", Headers: note}
	n := " corr=0198c0de-0000-7000-8000-000000000001"
	for name, c := range map[string]struct {
		e    holdfast.Entry
		want []string
	}{
		"a call is submitted":   {holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "erp"}, []string{"ApiOutbound CachedCall Submitted plant  erp corr=m"}},
		"a write is submitted":  {holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "db"}, []string{"DbOutbound CachedCall Submitted plant  db corr=m"}},
		"a message is enqueued": {holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "peer", About: &holdfast.About{CorrelationID: "c"}}, []string{"Message MessageSend Enqueued plant  peer corr=c"}},
		"an event is published": {
			holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "subscription:shop", About: &holdfast.About{Headers: map[string]string{"ce-id": "e"}}},
			[]string{"Webhook WebhookDeliver Enqueued plant  shop corr=e"},
		},
		"an event is delivered": {
			holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "subscription:shop", State: holdfast.Delivered, Outcome: holdfast.Succeeded, Took: took, Code: "http_204"},
			[]string{"Webhook WebhookDeliver Attempted plant system shop corr=m http=204 took=30ms", "Webhook WebhookDeliver Delivered plant system shop corr=m http=204"},
		},
		"a notification is sent":    {holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "central"}, []string{"Notification NotifySend Enqueued plant  central corr=m"}},
		"its first copy, at home":   {holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "channel:mail", About: site}, []string{"Notification NotifySend Enqueued plant  mail" + n}},
		"its second copy":           {holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "channel:chat", About: site}, nil},
		"its first copy at central": {holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "channel:mail", About: other}, []string{"Message MessageReceive Enqueued harbour harbour mail" + n}},
		"a person signs in":         {holdfast.Entry{Kind: holdfast.Called, Code: audit.CodeSignIn, Actor: "user:anna", Outcome: holdfast.Succeeded}, []string{"Operator SignIn Success plant user:anna sign-in"}},
		"a person is refused":       {holdfast.Entry{Kind: holdfast.Called, Code: audit.CodeSignIn, Actor: "stranger", Outcome: holdfast.Permanent, Error: "wrong"}, []string{"Operator SignIn Refused plant stranger sign-in error=wrong"}},
		"a person signs out":        {holdfast.Entry{Kind: holdfast.Called, Code: audit.CodeSignOut, Actor: "user:anna", Outcome: holdfast.Succeeded}, []string{"Operator SignIn Success plant user:anna sign-out"}},
		"a person is changed":       {holdfast.Entry{Kind: holdfast.PersonPut, Subject: "bob", Actor: "user:anna", Code: "rights"}, []string{"Operator Person Success plant user:anna bob"}},
		"a person is removed":       {holdfast.Entry{Kind: holdfast.PersonRemoved, Subject: "bob", Actor: "user:anna"}, []string{"Operator Person Success plant user:anna bob"}},
		"an attempt fails": {
			holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "erp", State: holdfast.Pending, Code: "http_503", Error: "busy", Took: took},
			[]string{"ApiOutbound CachedCall Attempted plant system erp corr=m error=busy http=503 took=30ms"},
		},
		"an attempt parks": {
			holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "erp", State: holdfast.Parked, Outcome: holdfast.Permanent, Code: "http_422", Error: "no", Took: took},
			[]string{"ApiOutbound CachedCall Attempted plant system erp corr=m error=no http=422 took=30ms", "ApiOutbound CachedCall Parked plant system erp corr=m error=no http=422"},
		},
		"a caller is told": {
			holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "erp", State: holdfast.Discarded, Reason: holdfast.ReasonRejected, Outcome: holdfast.Permanent, Error: "no"},
			[]string{"ApiOutbound CachedCall Attempted plant system erp corr=m error=no", "ApiOutbound CachedCall Failed plant system erp corr=m error=no"},
		},
		"what was never tried parks": {
			holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "peer", State: holdfast.Parked, Outcome: holdfast.NotStarted, Error: "torn"},
			[]string{"Message MessageSend Parked plant system peer corr=m error=torn"},
		},
		"an attempt delivers a notification": {
			holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "channel:mail", State: holdfast.Delivered, Outcome: holdfast.Succeeded, Took: took, About: other},
			[]string{"Notification NotifyDeliver Attempted harbour system mail" + n + " took=30ms", "Notification NotifyDeliver Delivered harbour system mail" + n},
		},
		"an attempt parks a notification": {
			holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "channel:mail", State: holdfast.Parked, Outcome: holdfast.Permanent, Error: "550 a@b", About: other},
			[]string{"Notification NotifyDeliver Attempted harbour system mail" + n + " error=550 a@b sealed=[error]", "Notification NotifyDeliver Parked harbour system mail" + n + " error=550 a@b sealed=[error]"},
		},
		"a recipient": {
			holdfast.Entry{Kind: holdfast.Reached, ID: "m", Destination: "channel:mail", Subject: "a@b", Outcome: holdfast.Permanent, Error: "550", About: other},
			[]string{"Notification NotifyReach Failed harbour system a@b" + n + " error=550 sealed=[error target]"},
		},
		"a retry": {holdfast.Entry{Kind: holdfast.Requeued, ID: "m", Destination: "channel:mail", Actor: "anna", About: other}, []string{"Operator Retry Success harbour anna m" + n}},
		"a discard": {
			holdfast.Entry{Kind: holdfast.GivenUp, ID: "m", Destination: "channel:mail", State: holdfast.Discarded, Error: "old", Actor: "anna", About: other},
			[]string{"Operator Discard Success harbour anna m" + n, "Notification NotifyDeliver Discarded harbour anna mail" + n},
		},
		"a discard during an attempt": {holdfast.Entry{Kind: holdfast.GivenUp, ID: "m", Destination: "erp", State: holdfast.Claimed, Actor: "anna"}, []string{"Operator Discard Submitted plant anna m corr=m"}},
		"an expiry":                   {holdfast.Entry{Kind: holdfast.TimedOut, ID: "m", Destination: "erp", State: holdfast.Expired}, []string{"ApiOutbound CachedCall Expired plant system erp corr=m"}},
		"a reclaim":                   {holdfast.Entry{Kind: holdfast.Reclaimed, ID: "m", Destination: "erp", State: holdfast.Pending, Error: "gone"}, []string{"ApiOutbound CachedCall Attempted plant system erp corr=m error=gone"}},
		"a reschedule":                {holdfast.Entry{Kind: holdfast.Rescheduled, ID: "m", Destination: "erp", Took: took, Actor: "anna"}, []string{"Operator Reschedule Success plant anna m corr=m"}},
		"a message that came":         {holdfast.Entry{Kind: holdfast.Handled, ID: "m", Subject: "harbour"}, []string{"Message MessageReceive Success plant harbour  corr=m"}},
		"a message that waits":        {holdfast.Entry{Kind: holdfast.KeptToFetch, ID: "m", Subject: "harbour", Detail: []byte(`{"endpoint":"E"}`)}, []string{"Message MessageReceive Enqueued plant harbour E corr=m"}},
		"a pause":                     {holdfast.Entry{Kind: holdfast.Paused, Subject: "erp", Actor: "anna"}, []string{"Operator Pause Success plant anna erp"}},
		"a resumption":                {holdfast.Entry{Kind: holdfast.Resumed, Subject: "erp", Actor: "anna"}, []string{"Operator Resume Success plant anna erp"}},
		"a list":                      {holdfast.Entry{Kind: holdfast.ListPut, Subject: "ops", Actor: "anna"}, []string{"Operator List Success plant anna ops"}},
		"a list goes":                 {holdfast.Entry{Kind: holdfast.ListRemoved, Subject: "ops", Actor: "anna"}, []string{"Operator List Success plant anna ops"}},
		"a channel":                   {holdfast.Entry{Kind: holdfast.ChannelPut, Subject: "mail", Actor: "anna"}, []string{"Operator Channel Success plant anna mail"}},
		"a channel goes":              {holdfast.Entry{Kind: holdfast.ChannelRemoved, Subject: "mail", Actor: "anna"}, []string{"Operator Channel Success plant anna mail"}},
		"a topic":                     {holdfast.Entry{Kind: holdfast.TopicPut, Subject: "orders", Actor: "anna"}, []string{"Operator Topic Success plant anna orders"}},
		"a topic goes":                {holdfast.Entry{Kind: holdfast.TopicRemoved, Subject: "orders", Actor: "anna"}, []string{"Operator Topic Success plant anna orders"}},
		"a subscription":              {holdfast.Entry{Kind: holdfast.SubscriptionPut, Subject: "shop", Code: "paused", Actor: "anna"}, []string{"Operator Subscription Success plant anna shop"}},
		"a schedule that is given up": {holdfast.Entry{Kind: holdfast.SchedulePut, Subject: "subscriptions", Code: holdfast.ScheduleReset, Actor: "anna"}, []string{"Operator Schedule Success plant anna subscriptions"}},
		"a schedule":                  {holdfast.Entry{Kind: holdfast.SchedulePut, Subject: "subscriptions", Code: "waiting", Actor: "anna"}, []string{"Operator Schedule Success plant anna subscriptions"}},
		"a subscription goes":         {holdfast.Entry{Kind: holdfast.SubscriptionRemoved, Subject: "shop", Actor: "anna"}, []string{"Operator Subscription Success plant anna shop"}},
		"a token":                     {holdfast.Entry{Kind: holdfast.TokenAdded, Subject: "ci", Actor: "anna"}, []string{"Operator Token Success plant anna ci"}},
		"a token goes":                {holdfast.Entry{Kind: holdfast.TokenRemoved, Subject: "ci", Actor: "anna"}, []string{"Operator Token Success plant anna ci"}},
		"a site":                      {holdfast.Entry{Kind: holdfast.SiteAdded, Subject: "harbour", Actor: "anna"}, []string{"Operator Site Success plant anna harbour"}},
		"a site enrolls":              {holdfast.Entry{Kind: holdfast.SiteEnrolled, Subject: "harbour"}, []string{"Operator Site Success plant harbour harbour"}},
		"a site may enroll again":     {holdfast.Entry{Kind: holdfast.SiteRenewed, Subject: "harbour", Actor: "anna"}, []string{"Operator Site Success plant anna harbour"}},
		"a site goes":                 {holdfast.Entry{Kind: holdfast.SiteRevoked, Subject: "harbour", Actor: "anna"}, []string{"Operator Site Success plant anna harbour"}},
		"a call of the API": {
			holdfast.Entry{Kind: holdfast.Called, Code: "get-message", Subject: "m", Actor: "anna", Outcome: holdfast.Permanent, Error: "none", Detail: []byte(`{"status":404,"tookUs":1500}`)},
			[]string{"ApiInbound ApiCall Refused plant anna m error=none http=404 took=1.5ms"},
		},
		"records of a site": {holdfast.Entry{Kind: holdfast.Copied, Subject: "holdfast/harbour/h1/i"}, []string{"System Copied Success plant system holdfast/harbour/h1/i"}},
		"an export":         {holdfast.Entry{Kind: holdfast.Called, Code: "export-audit", Actor: "anna", Outcome: holdfast.Succeeded}, []string{"Operator Export Success plant anna export-audit"}},
	} {
		c.e.At = time.Date(2026, 11, 30, 9, 0, 0, 1500, time.UTC)
		var got []string
		for _, r := range described(t, describer(), c.e) {
			got = append(got, brief(&r))
			if want := c.e.At.Truncate(time.Microsecond).Add(-r.Took); !r.Occurred.Equal(want) {
				t.Errorf("%s occurred at %s, want %s", name, r.Occurred, want)
			}
			if _, _, err := r.Leaf(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for k := holdfast.Enqueued; k.String() != "unknown"; k++ {
		if list := described(t, describer(), holdfast.Entry{Kind: k, ID: "m", Subject: "s", State: holdfast.Delivered}); len(list) == 0 || strings.HasPrefix(string(list[0].Kind), "Entry") {
			t.Errorf("entries of the kind %s are not described: %+v", k, list)
		}
	}
}

// The same event has the same id, and each event its own; where it came from stands in the record.
func TestARecordNamesItsEventAndOrigin(t *testing.T) {
	t.Parallel()
	d := describer()
	d.Site = " "
	e := holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "erp", State: holdfast.Parked, Seq: 7, About: &holdfast.About{
		Source: "plant", Headers: map[string]string{
			"hf-instance": "i\x00", "hf-script": "s", "hf-execution": "e", "hf-parent-execution": "p",
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
	}}
	list, again := described(t, d, e), described(t, d, e)
	if diff := cmp.Diff(list, again); diff != "" || list[0].ID == list[1].ID {
		t.Errorf("ids %s and %s; %s", list[0].ID, list[1].ID, diff)
	}
	if r := list[0]; r.Site != notify.UnknownSite || r.Node != "n1" || r.Instance != "i " || r.Script != "s" || r.Execution != "e" || r.Parent != "p" || r.Trace != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("got %+v", r)
	}
	e.Seq++
	if other := described(t, d, e); other[0].ID == list[0].ID {
		t.Error("two entries have one id")
	}
	d.Incarnation = func(context.Context) (string, error) { return "other", nil }
	e.Seq--
	if other := described(t, d, e); other[0].ID == list[0].ID {
		t.Error("two histories have one id")
	}
}

func TestSummariesHaveNoSecrets(t *testing.T) {
	t.Parallel()
	d := describer()
	d.Redact = []string{"iban"}
	for name, c := range map[string]struct{ payload, want string }{
		"members":  {`{"a":1.50,"Api-Key":"k","n":[{"user_password":{"x":1}}],"IBAN":"x"}`, `{"Api-Key":"[redacted]","IBAN":"[redacted]","a":1.50,"n":[{"user_password":"[redacted]"}]}`},
		"no JSON":  {`{"token":"abc`, "(13 bytes)"},
		"too much": {`{} {"token":"abc"}`, "(18 bytes)"},
		"too long": {`"` + strings.Repeat("ä", 5000) + `"`, `"` + strings.Repeat("ä", 4094) + "…"},
	} {
		d.Payload = func(context.Context, holdfast.ID) ([]byte, error) { return []byte(c.payload), nil }
		r := described(t, d, holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", Destination: "erp", About: &holdfast.About{}})[0]
		if r.Request != c.want || len(r.Request) > audit.MaxSummary || !cmp.Equal(r.Personal, []string{"request"}) {
			t.Errorf("%s: got %q, sealed %v, want %q", name, r.Request, r.Personal, c.want)
		}
	}
	d.Payload = func(context.Context, holdfast.ID) ([]byte, error) { return nil, holdfast.ErrNotFound }
	if r := described(t, d, holdfast.Entry{Kind: holdfast.Enqueued, ID: "m", About: &holdfast.About{}})[0]; r.Request != "" {
		t.Errorf("of a message that was purged: %q", r.Request)
	}
}

func TestAnswersStandInTheRecordsOfAttempts(t *testing.T) {
	t.Parallel()
	d := describer()
	d.Redact = []string{"iban"}
	e := holdfast.Entry{Kind: holdfast.Attempted, ID: "m", Destination: "erp", State: holdfast.Delivered, Outcome: holdfast.Succeeded, Detail: []byte(`{"answer":"{\"n\":1}"}`)}
	for _, r := range described(t, d, e) {
		if r.Response != "" {
			t.Errorf("%s has %q, and no content is wanted", r.Status, r.Response)
		}
	}
	d.Payload = func(context.Context, holdfast.ID) ([]byte, error) { return nil, holdfast.ErrNotFound }
	for _, r := range described(t, d, e) {
		if r.Response != `{"n":1}` || !cmp.Equal(r.Personal, []string{"response"}) || strings.Contains(string(r.Extra), "answer") {
			t.Errorf("%s: %+v", r.Status, r)
		}
	}
	reached := holdfast.Entry{Kind: holdfast.Reached, ID: "m", Destination: "channel:mail", Subject: "a@b", Outcome: holdfast.Succeeded, Detail: []byte(`{"channel":"mail","answer":"queued for a@b"}`)}
	if r := described(t, d, reached)[0]; r.Response != "queued for a@b" || strings.Contains(string(r.Extra), "queued") || !strings.Contains(string(r.Extra), `"channel":"mail"`) {
		t.Errorf("%+v, %s", r, r.Extra)
	}
	if got, want := d.Answer([]byte(`{"token":"abc","iban":"x","a":1}`), false), `{"a":1,"iban":"[redacted]","token":"[redacted]"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := []byte(`"` + strings.Repeat("ä", 50_000) + `"`)
	if done, ended := d.Answer(long, false), d.Answer(long, true); len(done) > audit.MaxSummary || len(ended) > audit.MaxErrorSummary || len(ended) < audit.MaxErrorSummary-4 {
		t.Errorf("%d and %d bytes", len(done), len(ended))
	}
	if got := d.Answer([]byte(`"`+strings.Repeat("a", 256<<10)+`"`), true); got != "(262146 bytes)" {
		t.Errorf("a large one: %.100s", got)
	}
	e.State, e.Outcome, e.Detail = holdfast.Parked, holdfast.Permanent, []byte(`{"answer":"`+strings.Repeat("x", 20_000)+`"}`)
	if list := described(t, d, e); len(list[0].Response) > audit.MaxSummary || len(list[1].Response) != 20_000 {
		t.Errorf("the attempt has %d bytes, and the end %d", len(list[0].Response), len(list[1].Response))
	}
}
