package opennotificaties_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/opennotificaties"
)

func variables(all map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := all[name]; return value, ok }
}

func TestAllBlocksAreRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/setup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := opennotificaties.Read("setup.yaml", text, variables(map[string]string{"ZAKEN_SECRET": "of-zaken", "RETRIES": "5", "EMPTY": ""}))
	if err != nil {
		t.Fatal(err)
	}
	want := &opennotificaties.File{
		Channels: []opennotificaties.Channel{
			{Name: "zaken", Documentation: new("https://zaken.example.nl/ref/kanalen/#zaken"), Filters: []string{"bronorganisatie", "zaaktype", "zaaktype.catalogus"}},
			{Name: "autorisaties", Documentation: new(""), Filters: []string{}},
		},
		Subscriptions: []opennotificaties.Subscription{
			{
				ID: "ff5a9438-6512-4c2d-b69e-6c512c466fb8", URL: "https://portal.example.nl/hook",
				Authorization: &opennotificaties.Authorization{Kind: "key", Secret: "Token first"},
				Groups:        []opennotificaties.Group{{Channel: "zaken", Filters: map[string]string{"bronorganisatie": "082096752011", "zaaktype": "*"}}},
			},
			{
				ID: "482a09ff-286b-4d0f-a1b8-9b99c1eac0f8", URL: "https://mijn.example.nl/hook", CloudEvents: new(true),
				Authorization: &opennotificaties.Authorization{Kind: "oauth2", Client: "node", Secret: "letmein", URL: "https://login.example.nl/token", Scopes: []string{"read", "write"}},
				Types: []opennotificaties.Type{
					{Contains: "zaak.created"},
					{Contains: "nl.overheid", Filters: map[string]string{"vertrouwelijkheidaanduiding": "openbaar"}},
				},
			},
			{
				ID: "03baec5a-93ef-4ba6-bb73-c548c12009a2", URL: "http://intern.example.nl:8000/hook",
				Authorization: &opennotificaties.Authorization{Kind: "zgw", Client: "node", Secret: "letmein"},
				Groups:        []opennotificaties.Group{{Channel: "zaken"}},
			},
			{ID: "13baec5a-93ef-4ba6-bb73-c548c12009a2", URL: "http://intern.example.nl:8000/open", Authorization: &opennotificaties.Authorization{}, Groups: []opennotificaties.Group{{Channel: "autorisaties", Filters: map[string]string{"leeg": ""}}}},
		},
		Schedule:       &opennotificaties.Schedule{Retries: 5, Factor: 3 * time.Second, Cap: 30 * time.Second},
		Clients:        []opennotificaties.Client{{ID: "open-zaak", Secret: "of-zaken"}, {ID: "portal", Secret: "fallback"}},
		Authorizations: &opennotificaties.Service{URL: "https://zaken.example.nl/autorisaties/api/v1/", Client: "open-notificaties", Secret: "of-autorisaties"},
	}
	places := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Path" }, cmp.Ignore())
	if diff := cmp.Diff(want, got, places, cmpopts.IgnoreFields(opennotificaties.File{}, "Notes"), cmpopts.IgnoreUnexported(opennotificaties.File{})); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	var notes []string
	for _, n := range got.Notes {
		notes = append(notes, n.Text)
	}
	for _, want := range []string{
		"oidc_db_config: is not read, it has no part in notifications",
		"zgw_consumers.services[1]: objecten is not needed",
		"notifications_subscriptions_config: is not read: it says how Open Notificaties subscribes to itself",
		"kanalen[1]: zaken is there twice for this subscription; as at Open Notificaties, the filters of both must fit",
		"482a09ff-286b-4d0f-a1b8-9b99c1eac0f8 is there twice; its last values count",
		"notifications_kanalen_config.items[2]: autorisaties is there twice; its last values count",
	} {
		if !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("no note %q among\n%s", want, strings.Join(notes, "\n"))
		}
	}
}

// A block counts only if its flag is true; variables of one that does not count need not be set.
func TestBlocksThatAreNotEnabledAreLeftOut(t *testing.T) {
	t.Parallel()
	const block = "notifications_kanalen_config:\n  items: [{naam: {value_from: {env: ABSENT}}}]\n"
	for name, flag := range map[string]string{
		"no flag": "", "false": "notifications_kanalen_config_enable: no\n", "by a variable": "notifications_kanalen_config_enable: {value_from: {env: OFF}}\n",
	} {
		got, err := opennotificaties.Read("setup.yaml", []byte(flag+block), variables(map[string]string{"OFF": "false"}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(got.Channels) != 0 || len(got.Notes) != 1 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	got, err := opennotificaties.Read("setup.yaml", []byte("notifications_kanalen_config_enable: {value_from: {env: ON}}\n"+strings.ReplaceAll(block, "ABSENT", "ON")), variables(map[string]string{"ON": "on"}))
	if err != nil || len(got.Channels) != 1 || got.Channels[0].Name != "on" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEachFaultHasItsLineAndNoneShowsASecret(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ text, want string }{
		"no YAML":               {"a: [", "setup.yaml:2: is not YAML"},
		"no mapping":            {"- a\n", "setup.yaml:1: the file is a list"},
		"flag":                  {"\nnotifications_config_enable: maybe\n", `setup.yaml:2: notifications_config_enable: "maybe" is not true or false`},
		"unknown key":           {"notifications_config_enable: true\nnotifications_config:\n  max_retries: 3\n", `setup.yaml:3: notifications_config: has the unknown key "max_retries"`},
		"variable":              {kanalen + "  - naam: {value_from: {env: ABSENT}}\n", "setup.yaml:4: notifications_kanalen_config.items[0].naam: is to come from the variable ABSENT, which is not set"},
		"both of a variable":    {kanalen + "  - naam: {value_from: {env: A, default: b, required: false}}\n", "has required and default"},
		"no name":               {kanalen + "  - documentatie_link: https://x.example/\n", "setup.yaml:4: notifications_kanalen_config.items[0].naam: is missing"},
		"a long name":           {kanalen + "  - naam: " + strings.Repeat("x", 51) + "\n", "has 51 characters; use at most 50"},
		"no link":               {kanalen + "  - naam: zaken\n    documentatie_link: zaken.html\n", `setup.yaml:5: notifications_kanalen_config.items[0].documentatie_link: "zaken.html" is no http`},
		"a key twice":           {kanalen + "  - naam: zaken\n    naam: besluiten\n", `setup.yaml:5: notifications_kanalen_config.items[0]: has the key "naam" twice`},
		"no items":              {"notifications_kanalen_config_enable: true\nnotifications_kanalen_config: {items: []}\n", "setup.yaml:2: notifications_kanalen_config: has no items"},
		"no uuid":               {abonnementen + "  - uuid: shop\n    callback_url: https://x.example/\n    kanalen: [{naam: zaken}]\n", `setup.yaml:4: notifications_abonnementen_config.items[0].uuid: "shop" is no UUID`},
		"nothing asked for":     {abonnementen + item, "has neither kanalen nor cloudevent_filters"}, // case 58
		"a password in the URL": {abonnementen + "  - uuid: 13baec5a93ef4ba6bb73c548c12009a2\n    callback_url: https://u:hunter2@x.example/\n    kanalen: [{naam: zaken}]\n", "setup.yaml:5: "},
		"a password with ftp":   {abonnementen + "  - uuid: 13baec5a93ef4ba6bb73c548c12009a2\n    callback_url: ftp://u:hunter2@x.example/\n    kanalen: [{naam: zaken}]\n", "setup.yaml:5: notifications_abonnementen_config.items[0].callback_url: is no http"},
		"a password in no URL":  {abonnementen + "  - uuid: 13baec5a93ef4ba6bb73c548c12009a2\n    callback_url: https://u:hunter2@x.example:no/\n    kanalen: [{naam: zaken}]\n", "is no http or https URL"},
		"a password, no scheme": {abonnementen + "  - uuid: 13baec5a93ef4ba6bb73c548c12009a2\n    callback_url: u:hunter2@x.example\n    kanalen: [{naam: zaken}]\n", "is no http or https URL"},
		"authorization":         {abonnementen + item + "    kanalen: [{naam: zaken}]\n    auth_type: basic\n", `setup.yaml:7: notifications_abonnementen_config.items[0].auth_type: "basic" is no way`},
		"what it needs":         {abonnementen + item + "    kanalen: [{naam: zaken}]\n    auth_type: zgw\n    auth: hunter2\n", "auth_client_id: is missing; auth_type zgw needs it"},
		"a secret as a number":  {abonnementen + item + "    kanalen: [{naam: zaken}]\n    auth: 4711\n", "setup.yaml:7: notifications_abonnementen_config.items[0].auth: is not text; put the value in quotes"},
		"a filter as a number":  {abonnementen + item + "    kanalen: [{naam: zaken, filters: {bron: 12}}]\n", `filters.bron: "12" is a number, not text`},
		"an unknown service":    {"autorisaties_api_config_enable: true\nautorisaties_api: {authorizations_api_service_identifier: ac}\n", `"ac" is no service of zgw_consumers`},
		"no retries":            {"notifications_config_enable: true\nnotifications_config: {notification_delivery_max_retries: -1}\n", `"-1" is below 0`},
	} {
		_, err := opennotificaties.Read("setup.yaml", []byte(of.text), variables(nil))
		if err == nil || !strings.Contains(err.Error(), of.want) {
			t.Errorf("%s: got %v, want %q", name, err, of.want)
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: a secret is shown: %v", name, err)
		}
	}
}

const (
	kanalen      = "notifications_kanalen_config_enable: true\nnotifications_kanalen_config:\n  items:\n"
	abonnementen = "notifications_abonnementen_config_enable: true\nnotifications_abonnementen_config:\n  items:\n"
	item         = "  - uuid: 13baec5a-93ef-4ba6-bb73-c548c12009a2\n    callback_url: https://x.example/hook\n"
)

// All faults are named at once.
func TestAllFaultsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := opennotificaties.Read("setup.yaml", []byte(kanalen+"  - naam: ''\n  - naam: "+strings.Repeat("y", 60)+"\n"+abonnementen+item), variables(nil))
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three lines", err)
	}
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/setup.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(kanalen + "  - &a {naam: *a}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := opennotificaties.Read("setup.yaml", text, variables(map[string]string{"ZAKEN_SECRET": "x"}))
		if (file == nil) == (err == nil) {
			t.Errorf("got %v and %v", file, err)
		}
	})
}
