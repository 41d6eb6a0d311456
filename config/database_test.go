package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

func TestAddressesPasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	for _, dsn := range []string{
		address,
		"postgres://127.0.0.1/d?user=holdfast&password=hunter2&sslpassword=hunter2%21",
		"postgres://u@127.0.0.1/d?pass%77ord=hunter2&PASSWORD=hunter2",
		"postgres://u:hunter2@127.0.0.1:5432,db.example:5432/d?search_path=own",
	} {
		d, err := config.NewDatabase(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if d.DSN() != dsn {
			t.Errorf("got %q, want %q", d.DSN(), dsn)
		}
		wrapped := struct {
			Shown  config.Database `json:"shown"`
			hidden config.Database
			Far    *config.Database `json:"far"`
		}{d, d, &d}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&printed, verb+verb+verb+"\n", d, &d, wrapped)
		}
		asJSON, err := json.Marshal(wrapped)
		if err != nil {
			t.Fatal(err)
		}
		printed.Write(asJSON)
		slog.New(slog.NewTextHandler(&printed, nil)).Info("a", slog.Any("store", d), slog.Any("wrapped", wrapped))
		c := config.Default()
		c.Store = d
		printed.Write(c.YAML())
		fmt.Fprintf(&printed, "%v %+v %#v", c, *c, c)
	}
	for _, leak := range []string{"hunter2", fmt.Sprintf("%x", "hunter2")} {
		if strings.Contains(printed.String(), leak) {
			t.Errorf("the password is shown as %s:\n%s", leak, printed.String())
		}
	}
	if !strings.Contains(printed.String(), "postgres://holdfast:[secret]@db.example:5432/holdfast?sslmode=verify-full") {
		t.Errorf("the rest of the address is not shown:\n%s", printed.String())
	}
}

// The address is found in each place that a setting may have, and printed as
// the place it was found in.
func TestStoreIsASetting(t *testing.T) {
	t.Parallel()
	const plain = "postgres://holdfast@127.0.0.1/holdfast"
	for name, c := range map[string]struct {
		text    string
		vars    map[string]string
		flags   config.Overrides
		dsn     string
		printed string
	}{
		"none":                {"", nil, config.Overrides{}, "", ""},
		"the file":            {"store: " + plain, nil, config.Overrides{}, plain, "store: " + plain},
		"a variable it names": {"store: {env: ADDRESS}", nil, config.Overrides{}, address, "store: {env: ADDRESS}"},
		"a file it names":     {"store: {file: address.txt}", nil, config.Overrides{}, address, "address.txt}"},
		"our variable":        {"store: " + plain, map[string]string{"HOLDFAST_STORE": address}, config.Overrides{}, address, "store: {env: HOLDFAST_STORE}"},
		"the flag":            {"store: {env: ADDRESS}", map[string]string{"HOLDFAST_STORE": address}, config.Overrides{Store: plain}, plain, "store: " + plain},
	} {
		got, warnings, err := config.Parse("holdfast.yaml", []byte(c.text), world(c.vars), c.flags)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: warnings %v, error %v", name, warnings, err)
			continue
		}
		if got.Store.DSN() != c.dsn || got.Store.IsZero() != (c.dsn == "") {
			t.Errorf("%s: got %q, want %q", name, got.Store.DSN(), c.dsn)
		}
		if text := got.YAML(); !bytes.Contains(text, []byte(c.printed)) || c.dsn == "" && bytes.Contains(text, []byte("\nstore:")) {
			t.Errorf("%s: printed\n%s\nwant %q in it", name, text, c.printed)
		}
		again, _, err := config.Parse("holdfast.yaml", got.YAML(), world(c.vars), config.Overrides{})
		if c.flags.Store != "" {
			continue // the variable stands over the file
		}
		if diff := cmp.Diff(got, again); diff != "" || err != nil {
			t.Errorf("%s: read back (-want +got), error %v:\n%s", name, err, diff)
		}
	}
}

// A setting that stands over the file must not tell the password either.
func TestABadAddressIsNotShown(t *testing.T) {
	t.Parallel()
	bad := "postgres://holdfast:hunter2%zz@db.example/holdfast"
	for name, c := range map[string]struct {
		vars  map[string]string
		flags config.Overrides
	}{
		"HOLDFAST_STORE: ": {vars: map[string]string{"HOLDFAST_STORE": bad}},
		"--store: ":        {flags: config.Overrides{Store: bad}},
	} {
		_, _, err := config.Parse("", nil, world(c.vars), c.flags)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), name+"store: ") {
			t.Errorf("%s got %v", name, err)
		}
	}
	if _, err := config.NewDatabase(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// What is on this machine needs no TLS.
func TestWhichAddressesNeedTLS(t *testing.T) {
	t.Parallel()
	for dsn, fine := range map[string]bool{
		"postgres://127.0.0.1/d":                                      true,
		"postgres://localhost,127.0.0.9/d?sslmode=disable":            true,
		"postgres://[::1]:5432/d":                                     true,
		"postgres:///d?host=/var/run/postgresql":                      true,
		"postgres://127.0.0.1/d?host=db.example":                      false,
		"postgres://db.example/d?host=127.0.0.1":                      true,
		"postgres://10.0.0.1/d?sslmode=allow":                         false,
		"postgres://10.0.0.1/d?sslmode=require":                       true,
		"postgres://127.0.0.1,10.0.0.1/d":                             false,
		"postgresql://a.example:1,b.example:2/d?sslmode=verify-full":  true,
		"postgresql://db.example:5432/d?sslmode=verify-ca&user=shop":  true,
		"postgres://db.example/d?sslmode=disable&sslmode=verify-full": false,
	} {
		_, _, err := config.Parse("", nil, world(nil), config.Overrides{Store: dsn})
		if (err == nil) != fine {
			t.Errorf("%s: got %v", dsn, err)
		}
	}
}
