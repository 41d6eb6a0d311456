package notificaties_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/notificaties"
)

var update = flag.Bool("update-publish", false, "write the transcripts of testdata/publish anew")

const (
	bron  = `"bron":"082096752011","zaaktype":"X","vertrouwelijkheidaanduiding":"openbaar"`
	event = `"hoofdObject":"https://zaken.example.nl/zaken/1","resource":"status","resourceUrl":"https://zaken.example.nl/statussen/d7a22/721c9","actie":"create","aanmaakdatum":"2025-01-01T12:00:00Z"`
)

// message is M of the reference with other kenmerken.
func message(kenmerken string) string {
	return `{"kanaal":"zaken","source":"zaken.example.nl",` + event + `,"kenmerken":{` + kenmerken + `}}`
}

// zaken opens the API with the kanaal Z.
func zaken(t *testing.T, change func(s *notificaties.Server)) *door {
	t.Helper()
	d := open(t, change)
	d.kanaal("zaken", "bron", "zaaktype", "vertrouwelijkheidaanduiding")
	return d
}

func on(filters map[string]string) fanout.Abonnement {
	return fanout.Abonnement{Kanalen: []fanout.FilterGroup{{Naam: "zaken", Filters: filters}}}
}

// want fails the test unless an answer has a status and the codes of its faults.
func (r reply) want(t *testing.T, status int, codes ...string) {
	t.Helper()
	var p notificaties.Problem
	if r.status >= 400 && json.Unmarshal([]byte(r.body), &p) != nil {
		t.Errorf("got %d %s, want a problem document", r.status, r.body)
	}
	var got []string
	for _, f := range p.InvalidParams {
		got = append(got, f.Name+"/"+f.Code)
	}
	if slices.Sort(got); r.status != status || !slices.Equal(got, codes) {
		t.Errorf("got %d %s, want %d %v", r.status, r.body, status, codes)
	}
}

// transcript compares bytes and headers with a file of testdata/publish. What differs each time has a name there.
func transcript(t *testing.T, name, text string) {
	t.Helper()
	for pattern, stand := range map[string]string{
		`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`: "UUID", `127\.0\.0\.1:\d+`: "HOST", `(?m)^Date: .*$`: "Date: DATE",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, stand)
	}
	file := filepath.Join("testdata", "publish", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(text, string(want)); d != "" {
		t.Errorf("%s (-got +want):\n%s", name, d)
	}
}

func headed(h http.Header, body string) string {
	var b strings.Builder
	if err := h.Write(&b); err != nil {
		return err.Error()
	}
	return b.String() + "\r\n" + body + "\n"
}

// 28 to 33: who gets a notification. One abonnement gets it once, whatever many of its groups it is for.
func TestWhoGetsANotification(t *testing.T) {
	t.Parallel()
	d, r := zaken(t, nil), subscriber(t, "")
	for id, a := range map[string]fanout.Abonnement{
		"29-all":   on(map[string]string{"bron": "082096752011", "zaaktype": "X", "vertrouwelijkheidaanduiding": "*"}),
		"29-other": on(map[string]string{"bron": "082096752011", "zaaktype": "Y", "vertrouwelijkheidaanduiding": "*"}),
		"30":       on(map[string]string{"bron": "082096752011"}),
		"31":       on(nil),
		"32":       {Kanalen: []fanout.FilterGroup{{Naam: "zaken"}, {Naam: "zaken", Filters: map[string]string{"bron": "*"}}}},
		"33":       {},
		"actie":    on(map[string]string{"#actie": "create", "#resource": "status"}),
		"destroy":  on(map[string]string{"#actie": "destroy"}),
	} {
		d.abonnement(id, r.URL+"/"+id, a, nil)
	}
	d.abonnement("28", r.URL+"/28", on(map[string]string{"bron": ""}), nil)
	for body, want := range map[string][]string{
		message(bron):                      {"29-all", "30", "31", "32", "actie"},
		message(``):                        {"28", "29-all", "29-other", "30", "31", "32", "actie"},
		message(`"bron":""`):               {"28", "31", "32", "actie"},
		message(`"bron":"082096752011"`):   {"29-all", "29-other", "30", "31", "32", "actie"},
		message(`"BRON":" 082096752011 "`): {"29-all", "29-other", "30", "31", "32", "actie"},
		message(`"bron":5,"zaaktype":"Y"`): {"31", "32", "actie"},
		strings.ReplaceAll(message(bron), `"create"`, `"destroy"`): {"29-all", "30", "31", "32", "destroy"},
	} {
		key := fmt.Sprintf("k-%d-%d-%d", len(body), strings.Count(body, "destroy"), strings.Count(body, "BRON"))
		d.post("notificaties", body, "Idempotency-Key", key).want(t, http.StatusCreated)
		list, err := d.book.Store().EventsOf(t.Context(), holdfast.ID(key))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v, %v", key, list, err)
		}
		to, err := d.book.Store().Deliveries(t.Context(), list[0].Seq, 0, 100)
		var got []string
		for i := range to {
			got = append(got, to[i].Subscription)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", body, got, err, want)
		}
	}
}

// 34 to 37, and the rules of each member: what is refused, and by which code. Nobody gets it.
func TestNotificationsThatAreRefused(t *testing.T) {
	t.Parallel()
	d, r := zaken(t, func(s *notificaties.Server) { s.Leeway = 5 * time.Second }), subscriber(t, "")
	d.abonnement("all", r.URL, on(nil), nil)
	change := func(from, to string) string { return strings.Replace(message(bron), from, to, 1) }
	const invalidURL = "hoofdObject/invalid"
	for body, codes := range map[string][]string{
		message(`"bron":"1","other":"x"`):                                    {"kenmerken/kenmerken_inconsistent"}, // 34
		message(`"bron":true`):                                               {"kenmerken.bron/invalid"},           // 36
		message(`"bron":null`):                                               {"kenmerken.bron/null"},
		message(`"bron":{"a":"b"}`):                                          {"kenmerken.bron/invalid"},
		message(`"bron":"` + strings.Repeat("é", 1001) + `"`):                {"kenmerken.bron/max_length"},
		change(`"kanaal":"zaken"`, `"kanaal":"besluiten"`):                   {"kanaal/message_kanaal"},
		change(`"kanaal":"zaken",`, ``):                                      {"kanaal/required"},
		change(`"kanaal":"zaken"`, `"kanaal":"cloudevents"`):                 {"kanaal/message_kanaal"},
		change(`"source":"zaken.example.nl"`, `"source":" "`):                {"source/blank"},
		change(`https://zaken.example.nl/zaken/1`, `urn:uuid:1`):             {invalidURL},
		change(`https://zaken.example.nl/zaken/1`, `not a url`):              {invalidURL},
		change(`2025-01-01T12:00:00Z`, `yesterday`):                          {"aanmaakdatum/invalid"},
		change(`2025-01-01T12:00:00Z`, `2999-01-01T12:00:00Z`):               {"aanmaakdatum/future_not_allowed"},
		change(`"actie":"create"`, `"actie":"`+strings.Repeat("a", 101)+`"`): {"actie/max_length"},
		`{}`: {"aanmaakdatum/required", "actie/required", "hoofdObject/required", "kanaal/required", "resource/required", "resourceUrl/required"},
		`[]`: {"nonFieldErrors/invalid"},
	} {
		d.post("notificaties", body).want(t, http.StatusBadRequest, codes...)
	}
	d.post("notificaties", `{`).want(t, http.StatusBadRequest)
	d.post("notificaties", message(bron), "Content-Type", "text/plain").want(t, http.StatusUnsupportedMediaType)
	d.post("notificaties", message(bron), "Authorization", "").want(t, http.StatusForbidden)
	d.post("notificaties", message(bron), "Idempotency-Key", "a b").want(t, http.StatusBadRequest, "Idempotency-Key/invalid")
	soon := time.Now().Add(4 * time.Second).UTC().Format(time.RFC3339)
	d.post("notificaties", change(`2025-01-01T12:00:00Z`, soon)).want(t, http.StatusCreated)
	d.ended("all", holdfast.Delivered, 1)
	transcript(t, "34-refused", headed(d.post("notificaties", message(`"bron":"1","other":"x"`)).header, d.post("notificaties", message(`"bron":"1","other":"x"`)).body))
}

// The upstream's form of faults, and of hosts, are settings.
func TestAsTheUpstreamDoes(t *testing.T) {
	t.Parallel()
	d := zaken(t, func(s *notificaties.Server) { s.StrictHosts, s.PlainFaults = true, true })
	got := d.post("notificaties", strings.Replace(message(`"bron":true`), "https://zaken.example.nl/zaken/1", "http://openzaak:8000/1", 1))
	transcript(t, "2.6-plain-faults", headed(got.header, got.body))
	if got.status != http.StatusBadRequest {
		t.Errorf("got %d", got.status)
	}
}

// 36 and 37, and 3.3: what a publisher and a subscriber see. Texts are trimmed, numbers become texts, and members
// that nobody knows are dropped. A key makes a repeat known.
func TestWhatIsDelivered(t *testing.T) {
	t.Parallel()
	d, r := zaken(t, nil), subscriber(t, "")
	d.kanaal("objecten", "object_type")
	all := on(nil)
	all.Kanalen = append(all.Kanalen, fanout.FilterGroup{Naam: "objecten", Filters: map[string]string{"objectType": "5"}})
	d.abonnement("all", r.URL, all, func(s *fanout.Subscription) {
		s.Authorization = &fanout.Authorization{Kind: fanout.HeaderKey, Header: "Authorization", Sealed: "Token verbatim 1"}
	})
	for name, body := range map[string]string{
		"37":         `{"kanaal":"zaken","hoofd_object":"http://openzaak:8000/1","resource":" status ","resource_url":"https://z.example.nl/s/2?x=1","actie":"create","aanmaakdatum":"2025-01-01T13:00:00.123456+01:00","kenmerken":{"bron":""},"unknown":1}`,
		"36-without": `{"kanaal":"zaken",` + event + `}`,
		"36-number":  strings.Replace(message(`"object_type":5,"someURL":"<&>"`), `"zaken"`, `"objecten"`, 1),
	} {
		before := len(r.got())
		var got reply
		for range 2 {
			if got = d.post("notificaties", body, "Idempotency-Key", `"`+name+`"`); got.status != http.StatusCreated {
				t.Fatalf("%s: %d %s", name, got.status, got.body)
			}
		}
		d.post("notificaties", strings.Replace(body, "create", "destroy", 1), "Idempotency-Key", name).want(t, http.StatusConflict)
		d.ended("all", holdfast.Delivered, before+1)
		hit := r.got()[before]
		transcript(t, name, headed(got.header, got.body)+"\n-- the subscriber --\n"+headed(hit.header, hit.body))
	}
}
