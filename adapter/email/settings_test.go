package email_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email"
)

// fields are those that the faults of an error name.
func fields(err error) (names []string) {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			names = append(names, fields(e)...)
		}
		return names
	}
	if f, ok := errors.AsType[*holdfast.FieldError](err); ok {
		return []string{f.Field}
	}
	return []string{"?"}
}

// NO-09: all faults of settings are told at once, each with its field; E28.
func TestFaultsOfSettings(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := object{"mechanism": "plain", "user": "u", "password": named("smtp")}
	grant := object{"url": "https://x.test/token", "client": "c", "secret": named("smtp")}
	for name, c := range map[string]struct {
		changes object
		want    string
	}{
		"right":                   {object{}, ""},
		"right with TLS":          {object{"tls": "starttls", "auth": plain}, ""},
		"right with OAuth2":       {object{"tls": "implicit", "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": grant}}, ""},
		"right with a token":      {object{"tls": "implicit", "auth": object{"mechanism": "oauthbearer", "user": "u", "password": named("token")}}, ""},
		"key in the URL":          {object{"tls": "implicit", "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": object{"url": "https://x.test/token?code=hunter2", "client": "c", "secret": named("smtp")}}}, "auth.oauth2.url"}, // F1-17
		"right in clear":          {object{"auth": plain, "allowInsecureAuth": true}, ""},
		"no host":                 {object{"host": ""}, "host"},
		"underscore":              {object{"host": "mail_1.test"}, "host"},
		"URL as a host":           {object{"host": "smtp://x.test"}, "host"},
		"port":                    {object{"port": 0}, "port"},
		"port as text":            {object{"port": "25"}, "port"},
		"no TLS mode":             {object{"tls": ""}, "tls"},
		"TLS mode":                {object{"tls": "auto"}, "tls"},
		"unknown key":             {object{"tsl": "none"}, "tsl"},
		"unknown key below":       {object{"auth": object{"pasword": "x"}}, "auth.pasword"},
		"server name":             {object{"serverName": "a b"}, "serverName"},
		"localhost":               {object{"ehlo": "localhost.localdomain"}, "ehlo"},
		"ehlo":                    {object{"ehlo": "a\r\nMAIL"}, "ehlo"},
		"address as ehlo":         {object{"ehlo": "[10.0.0.1]"}, ""},
		"no sender":               {object{"from": ""}, "from"},
		"sender":                  {object{"from": "a@x.test, b@x.test"}, "from"},
		"sender with controls":    {object{"from": "A\r\nBcc: b@x.test <a@x.test>"}, "from"},
		"sender beyond ASCII":     {object{"from": "ü@x.test"}, "from"},
		"reply to":                {object{"replyTo": "nobody"}, "replyTo"},
		"domain of ids":           {object{"messageIdDomain": "x>y"}, "messageIdDomain"},
		"mechanism":               {object{"auth": object{"mechanism": "ntlm"}}, "auth.mechanism"},
		"user without mechanism":  {object{"auth": object{"user": "u"}}, "auth.mechanism"},
		"no user":                 {object{"tls": "starttls", "auth": object{"mechanism": "plain", "password": named("smtp")}}, "auth.user"},
		"no password":             {object{"tls": "starttls", "auth": object{"mechanism": "plain", "user": "u"}}, "auth.password"},
		"password itself":         {object{"tls": "starttls", "auth": object{"mechanism": "plain", "user": "u", "password": password}}, "auth.password"},
		"password out of folder":  {object{"tls": "starttls", "auth": object{"mechanism": "plain", "user": "u", "password": named("../x")}}, "auth.password"},
		"password in clear":       {object{"auth": plain}, "tls"},
		"longest name":            {object{"tls": "starttls", "auth": object{"mechanism": "plain", "user": "u", "password": named(strings.Repeat("n", 64))}}, ""},
		"name too long":           {object{"tls": "starttls", "auth": object{"mechanism": "plain", "user": "u", "password": named(strings.Repeat("n", 65))}}, "auth.password"},
		"no token":                {object{"tls": "starttls", "auth": object{"mechanism": "xoauth2", "user": "u"}}, "auth.oauth2"},
		"two tokens":              {object{"tls": "starttls", "auth": object{"mechanism": "xoauth2", "user": "u", "password": named("t"), "oauth2": grant}}, "auth.oauth2"},
		"grant of plain":          {object{"tls": "starttls", "auth": object{"mechanism": "plain", "user": "u", "password": named("t"), "oauth2": grant}}, "auth.oauth2"},
		"empty grant":             {object{"tls": "starttls", "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": object{"scopes": []string{"s"}}}}, "auth.oauth2.url auth.oauth2.client auth.oauth2.secret"},
		"grant in clear":          {object{"tls": "starttls", "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": object{"url": "http://x.test", "client": "c", "secret": named("s")}}}, "auth.oauth2.url"},
		"grant to an address":     {object{"tls": "starttls", "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": object{"url": "http://192.0.2.1", "client": "c", "secret": named("s")}}}, "auth.oauth2.url"},
		"grant on the machine":    {object{"tls": "starttls", "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": object{"url": "http://127.0.0.1", "client": "c", "secret": named("s")}}}, ""},
		"grant with a password":   {object{"tls": "starttls", "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": object{"url": "https://a:" + password + "@x.test", "client": "c", "secret": named("s")}}}, "auth.oauth2.url"},
		"certificate without key": {object{"cert": "x"}, "cert"},
		"authority":               {object{"ca": empty}, "ca"},
		"no file":                 {object{"ca": empty + "x", "cert": "x", "key": "x"}, "ca cert"},
		"numbers":                 {object{"connections": 0, "perConnection": 1.5, "recipientsPerMail": -1}, "connections perConnection recipientsPerMail"},
		"times":                   {object{"idle": 20, "timeouts": object{"command": "0s", "afterDot": "forever", "dot": "1s"}}, "idle timeouts.afterDot timeouts.command timeouts.dot"},
		"zone":                    {object{"zone": "Mars/Olympus"}, "zone"},
		"zone of the machine":     {object{"zone": "Local"}, "zone"},
		"all at once":             {object{"host": "", "tls": "x", "from": "", "zone": "x"}, "from host tls zone"},
	} {
		_, err := email.New(encode(t, with(c.changes)), email.Options{Secret: secrets(nil)})
		got, want := fields(err), strings.Fields(c.want)
		for i := range want {
			want[i] = "settings." + want[i]
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v: %v", name, got, want, err)
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%s: a secret is shown: %v", name, err)
		}
	}
}

// Settings that are no object at all, or say a thing twice; and secrets where
// there are none.
func TestSettingsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "null", "[]", `"x"`, "{", `{"host":"a.test","host":"b.test"}`, "{\"host\":\"\xff\"}"} {
		if _, err := email.New(json.RawMessage(raw), email.Options{}); err == nil || slices.Contains(fields(err), "?") {
			t.Errorf("%q: %v", raw, err)
		}
	}
	if _, err := email.New(nil, email.Options{}); !slices.Contains(fields(err), "settings.host") || slices.Contains(fields(err), "settings") {
		t.Errorf("no settings: got %v, want what is missing, and no more", err)
	}
	s := with(object{"tls": "starttls"})
	maps.Copy(s, object{"auth": object{"mechanism": "plain", "user": "u", "password": named("smtp")}})
	if _, err := email.New(encode(t, s), email.Options{}); err == nil || !strings.Contains(err.Error(), "notifications.secrets") {
		t.Errorf("got %v", err)
	}
}

// F1-07: who writes a channel does not learn which files the machine has, and a
// device does not hold it up.
func TestFilesOfSettingsTellNothingOfThemselves(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other := filepath.Join(folder, "other")
	if err := os.WriteFile(other, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, path := range []string{other, filepath.Join(folder, "absent"), folder, "/dev/zero"} {
		settings := encode(t, with(object{"ca": path, "cert": path, "key": path}))
		_, err := email.New(settings, email.Options{Secret: secrets(nil)})
		if err == nil {
			t.Fatalf("%s was taken", path)
		}
		told[strings.ReplaceAll(err.Error(), path, "PATH")] = true
	}
	if len(told) != 1 {
		t.Errorf("got %d texts, want one for every cause: %v", len(told), told)
	}
}
