package notificaties_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

const created = `{"specversion":"1.0","id":"c-1","source":"urn:nld:oin:1:systeem:A","type":"nl.overheid.zaken.zaak.created","subject":"721c9","time":"2025-01-01T13:00:00.5+01:00","dataref":"https://zaken.example.nl/1","datacontenttype":"application/json","data":{ "vertrouwelijkheidaanduiding": "zeer_geheim", "n": 1.50 }}`

func cloudOf(groups ...fanout.CloudEventFilter) fanout.Abonnement {
	return fanout.Abonnement{SendCloudEvents: true, CloudEventFilters: groups}
}

func part(text string, filters ...string) fanout.CloudEventFilter {
	g := fanout.CloudEventFilter{TypeSubstring: text, Filters: map[string]string{}}
	for i := 0; i < len(filters); i += 2 {
		g.Filters[filters[i]] = filters[i+1]
	}
	return g
}

// 49 and 50: who gets a CloudEvent: whose part of the type stands in it, and whose filters its data meet. It is sent
// once, byte by byte.
func TestWhoGetsACloudEvent(t *testing.T) {
	t.Parallel()
	d, r := zaken(t, nil), subscriber(t, "")
	for id, a := range map[string]fanout.Abonnement{
		"49":       cloudOf(part("nl.overheid.zaken")),
		"49-three": cloudOf(part("zaken"), part("nl"), part("created")),
		"49-test":  cloudOf(part("test")),
		"50":       cloudOf(part("zaken", "vertrouwelijkheidaanduiding", "zeer_geheim")),
		"50-any":   cloudOf(part("zaken", "vertrouwelijkheidaanduiding", "*")),
		"50-not":   cloudOf(part("zaken", "vertrouwelijkheidaanduiding", "openbaar")),
		"classic":  {Kanalen: []fanout.FilterGroup{{Naam: "zaken"}}, CloudEventFilters: []fanout.CloudEventFilter{part("zaken")}},
	} {
		d.abonnement(id, r.URL, a, nil)
	}
	for i, x := range []struct {
		body string
		want []string
	}{
		{created, []string{"49", "49-three", "50", "50-any"}},
		{`{"specversion":"1.0","id":"c-2","source":"s","type":"nl.overheid.zaken.zaak.created","data":{}}`, []string{"49", "49-three", "50", "50-any", "50-not"}},
		{`{"specversion":"1.0","id":"c-3","source":"s","type":"nl.overheid.zaken.zaak.created"}`, []string{"49", "49-three", "50", "50-any", "50-not"}},
		{`{"specversion":"1.0","id":"c-4","source":"s","type":"nl.overheid.zaken.zaak.created","data":"<xml/>"}`, []string{"49", "49-three", "50", "50-any", "50-not"}},
		{`{"specversion":"1.0","id":"c-5","source":"s","type":"test","data":null}`, []string{"49-test"}},
	} {
		before := len(r.got())
		d.cloud(x.body).want(t, http.StatusCreated)
		list, err := d.book.Store().EventsOf(t.Context(), holdfast.ID(fmt.Sprint("c-", i+1)))
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		to, err := d.book.Store().Deliveries(t.Context(), list[0].Seq, 0, 100)
		var got []string
		for j := range to {
			got = append(got, to[j].Subscription)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, x.want) {
			t.Errorf("%s: got %v, %v, want %v", x.body, got, err, x.want)
		}
		d.received(r, before+len(x.want))
		for _, h := range r.got()[before:] {
			if h.body != x.body || h.header.Get("Content-Type") != fanout.CloudEventJSON {
				t.Errorf("got %s as %s, want %s", h.body, h.header.Get("Content-Type"), x.body)
			}
		}
	}
}

// 48, 53 and 54: how a CloudEvent is taken. The same id and source again is the same event, attributes that nobody
// knows stay, and a fault is named.
func TestHowACloudEventIsTaken(t *testing.T) {
	t.Parallel()
	d, r := open(t, nil), subscriber(t, "")
	d.abonnement("all", r.URL, cloudOf(part("")), nil)
	d.post("cloudevents", created).want(t, http.StatusUnsupportedMediaType)
	first := d.cloud(created, "Accept", "application/json")
	if first.status != http.StatusCreated || first.header.Get("Content-Type") != "application/json" {
		t.Errorf("48: %+v", first)
	}
	again := d.cloud(created)
	if again.status != http.StatusCreated || again.body != first.body {
		t.Errorf("53: %+v", again)
	}
	d.cloud(strings.Replace(created, "721c9", "x", 1)).want(t, http.StatusConflict)
	d.ended("all", holdfast.Delivered, 1)
	transcript(t, "54", headed(again.header, again.body)+"\n-- the subscriber --\n"+headed(r.got()[0].header, r.got()[0].body))

	long := strings.Repeat("é", 255)
	for body, want := range map[string]string{
		`{"specversion":"1.0","id":5,"source":" s ","type":"t"}`:                                                `{"specversion":"1.0","id":"5","source":"s","type":"t"}`,
		`{"specversion":"1.0","id":"` + long + `","source":"` + long + `","type":"t","subject":"","time":null}`: "",
	} {
		before := len(r.got())
		if want == "" {
			want = body
		}
		d.cloud(body).want(t, http.StatusCreated)
		d.received(r, before+1)
		if got := r.got()[before].body; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for body, codes := range map[string][]string{
		`{}`: {"id/required", "source/required", "specversion/required", "type/required"},
		`{"specversion":"one","id":"1","source":"s","type":"t"}`:                               {"specversion/invalid"},
		`{"specversion":"1.0","id":true,"source":"s","type":"` + long + `x"}`:                  {"id/invalid", "type/max_length"},
		`{"specversion":"1.0","id":"1","source":"s","type":"t","subject":null}`:                {"subject/null"},
		`{"specversion":"1.0","id":"1","source":"s","type":"t","time":"noon","dataschema":{}}`: {"dataschema/invalid", "time/invalid"},
		`[]`: {"nonFieldErrors/invalid"},
		`{"specversion":"1.0","specversion":"1.0"}`: nil, `{`: nil, `{} {}`: nil, ``: nil,
	} {
		d.cloud(body).want(t, http.StatusBadRequest, codes...)
	}
}

// 52: a notification goes to who wants CloudEvents as one, with one id in all attempts, which is another one for each
// subscriber. Without a source it cannot, and then nobody gets it.
func TestANotificationAsCloudEvent(t *testing.T) {
	t.Parallel()
	d, r, plain := zaken(t, nil), subscriber(t, "no", 500, 204), subscriber(t, "")
	d.abonnement("plain", plain.URL, on(nil), nil)
	without := strings.Replace(message(bron), `"source":"zaken.example.nl",`, "", 1)
	d.post("notificaties", without).want(t, http.StatusCreated)
	a := on(nil)
	a.SendCloudEvents = true
	d.abonnement("cloud", r.URL, a, nil)
	d.post("notificaties", without).want(t, http.StatusBadRequest, "source/required")
	d.post("notificaties", message(bron)).want(t, http.StatusCreated)
	m := d.ended("cloud", holdfast.Delivered, 1)[0]
	got := r.got()
	if len(got) != 2 || cmp.Diff(got[0].body, got[1].body) != "" || !strings.Contains(got[0].body, string(m.Message.ID)) {
		t.Fatalf("got %+v", got)
	}
	transcript(t, "52", headed(got[1].header, got[1].body))
	d.ended("plain", holdfast.Delivered, 2)
}
