package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

func TestNoFileIsAStandaloneNode(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func() (*config.Config, []config.Warning, error){
		"no file": func() (*config.Config, []config.Warning, error) {
			return config.Load("", world(nil), config.Overrides{})
		},
		"empty file": func() (*config.Config, []config.Warning, error) {
			return config.Parse("f", nil, world(nil), config.Overrides{})
		},
		"only comments": func() (*config.Config, []config.Warning, error) {
			return config.Parse("f", []byte("# nothing\n"), world(nil), config.Overrides{})
		},
		"empty keys": func() (*config.Config, []config.Warning, error) {
			return config.Parse("f", []byte("node:\ntls:\nlog:\ndestinations:\nreceive: {secrets: , endpoints: }\n"), world(nil), config.Overrides{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, warnings, err := load()
			if err != nil || len(warnings) > 0 {
				t.Fatalf("got warnings %v, error %v", warnings, err)
			}
			want := config.Default()
			want.Node.ID = "shop-12"
			want.Data = within(t, "holdfast-data")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	want := &config.Config{
		Listen: "127.0.0.1:8420", Data: "./holdfast-data", Lease: 15 * time.Second, Tokens: "remote",
		Log:        config.Log{Level: "info", Format: "text"},
		Durability: "full",
		Role:       "standalone",
		Limits:     config.Limits{Payload: 1 << 20, Reserve: 16 << 20, Strangers: 16 << 20, Bodies: 64 << 20},
		Retention: config.Retention{
			Activity: 30 * day, Delivered: 7 * day, Discarded: 7 * day, Expired: 7 * day, Inbox: 7 * day, Parked: config.Never, Sweep: 5 * time.Minute, Tracking: 7 * day,
		},
		Activity:     true,
		Stop:         10 * time.Second,
		Drain:        time.Second,
		ClockHold:    day,
		Poll:         time.Second,
		Backup:       config.Backup{Every: time.Hour, Hourly: 24, Daily: 7},
		Audit:        config.Audit{Content: config.ContentNone, Verify: time.Hour},
		Pages:        config.Pages{Enabled: true, Colour: config.Grey},
		Sessions:     config.Sessions{Life: 12 * time.Hour, Idle: 30 * time.Minute},
		Destinations: map[string]config.Destination{},
		Receive:      config.Receive{Window: 24 * time.Hour, Sources: map[string]config.Source{}, Endpoints: map[string]config.Endpoint{}},

		Central: config.Central{Timeout: 30 * time.Second},
		Notifications: config.Notifications{
			Poll: time.Second, Retention: 365 * day, Sweep: time.Hour, Stuck: 10 * time.Minute, Window: time.Minute,
		},
		Webhooks:     config.Webhooks{Retention: 30 * day, Backoff: "exponential", Factor: 25 * time.Second, Base: 4, Cap: 52_000 * time.Second, Retries: 7, DisableAfter: 5 * day},
		Notificaties: config.Notificaties{Callbacks: config.CallbacksProtected, Links: true, Hosts: config.HostsAny, Faults: config.FaultsProblem, Abonnementen: 10_000},
	}
	if diff := cmp.Diff(want, config.Default()); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	destination := config.Destination{
		HMAC: "v2", TTL: day, Timeout: 30 * time.Second, Concurrency: 20, Charge: "connected", Order: "none", Schedule: "lane",
		Retry: config.Retry{
			Policy: "exponential", Base: 2 * time.Second, Cap: 5 * time.Minute, Factor: 2, Jitter: 500 * time.Millisecond, Retries: 5,
		},
	}
	if diff := cmp.Diff(destination, config.DefaultDestination()); diff != "" {
		t.Errorf("destination (-want +got):\n%s", diff)
	}
	fixed := config.Retry{Policy: "fixed", Interval: 30 * time.Second, Retries: 50}
	if diff := cmp.Diff(fixed, config.DefaultRetry(config.Fixed)); diff != "" {
		t.Errorf("fixed (-want +got):\n%s", diff)
	}
}

func TestEnvironmentGoesOverTheFileAndFlagsOverBoth(t *testing.T) {
	t.Parallel()
	text := `
node: {id: file}
listen: 127.0.0.1:1
data: file
listenUnencrypted: true
log: {level: error, format: text}
`
	vars := map[string]string{
		"HOLDFAST_NODE_ID": "env", "HOLDFAST_LISTEN": "127.0.0.1:2", "HOLDFAST_DATA": "env", "HOLDFAST_LISTEN_UNENCRYPTED": "0",
		"HOLDFAST_LOG_LEVEL": "warn", "HOLDFAST_LOG_FORMAT": "json",
	}
	no, yes := false, true
	type values struct {
		ID, Listen, Data string
		Unencrypted      bool
		Level            config.LogLevel
		Format           config.LogFormat
	}
	cases := map[string]struct {
		vars  map[string]string
		flags config.Overrides
		want  values
	}{
		"file":        {nil, config.Overrides{}, values{"file", "127.0.0.1:1", "conf/file", true, "error", "text"}},
		"environment": {vars, config.Overrides{}, values{"env", "127.0.0.1:2", "env", false, "warn", "json"}},
		"flags": {
			vars,
			config.Overrides{NodeID: "flag", Listen: "[::1]:3", Data: "flag", ListenUnencrypted: &yes, LogLevel: "debug", LogFormat: "text"},
			values{"flag", "[::1]:3", "flag", true, "debug", "text"},
		},
		"a flag that says no": {
			map[string]string{"HOLDFAST_LISTEN_UNENCRYPTED": "true"},
			config.Overrides{ListenUnencrypted: &no},
			values{"file", "127.0.0.1:1", "conf/file", false, "error", "text"},
		},
		"empty variables are none": {
			map[string]string{"HOLDFAST_LISTEN": "", "HOLDFAST_DATA": "", "HOLDFAST_LISTEN_UNENCRYPTED": ""},
			config.Overrides{},
			values{"file", "127.0.0.1:1", "conf/file", true, "error", "text"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := config.Parse(filepath.Join("conf", "holdfast.yaml"), []byte(text), world(c.vars), c.flags)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Data = within(t, c.want.Data)
			have := values{got.Node.ID, got.Listen, got.Data, got.ListenUnencrypted, got.Log.Level, got.Log.Format}
			if diff := cmp.Diff(c.want, have); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAValueThatIsOverriddenNeedNotBeRight(t *testing.T) {
	t.Parallel()
	_, _, err := config.Parse("f", []byte("listen: nowhere\n"), world(nil), config.Overrides{Listen: "127.0.0.1:1"})
	if err != nil {
		t.Errorf("got error %v", err)
	}
}

func TestPathsInTheFileAreRelativeToItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"s.b64": good + "\r\n", "ca.pem": "a", "cert.pem": "a", "key.pem": "a",
		"holdfast.yaml": `
node: {id: a}
data: here
tls: {cert: cert.pem, key: ./key.pem}
destinations:
  b: {url: "https://h", secret: {file: s.b64}, ca: ca.pem}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, _, err := config.Load(filepath.Join(dir, "holdfast.yaml"), config.Env{}, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Data, c.TLS.Cert, c.TLS.Key, c.Destinations["b"].CA}
	want := []string{filepath.Join(dir, "here"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if got := string(c.Destinations["b"].Secret.Bytes()); got != key {
		t.Errorf("got secret %q, want %q", got, key)
	}
}

func TestHostNameIsTheNodesIDWhenNoneIsSet(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such thing")
	cases := map[string]struct {
		host func() (string, error)
		want string // part of the fault
	}{
		"none":     {nil, "there is no host name to take"},
		"broken":   {func() (string, error) { return "", broken }, broken.Error()},
		"empty":    {func() (string, error) { return "", nil }, "is the host name, and is empty"},
		"unusable": {func() (string, error) { return "Anna's PC", nil }, `is the host name, and holds the character ' '`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := world(nil)
			env.Host = c.host
			_, _, err := config.Load("", env, config.Overrides{})
			got := faults(t, err)
			if len(got) != 1 || got[0].Path != "node.id" || !strings.Contains(got[0].String(), c.want) {
				t.Errorf("got faults %v, want one of node.id with %q", got, c.want)
			}
			if c, _, err := config.Load("", env, config.Overrides{NodeID: "a"}); err != nil || c.Node.ID != "a" {
				t.Errorf("with --node-id: got error %v", err)
			}
		})
	}
}

func TestUnknownVariablesAreWarnedOf(t *testing.T) {
	t.Parallel()
	env := world(map[string]string{
		"HOLDFAST_LISTN": "x", "HOLDFAST_COLOUR": "x", // these two
		"HOLDFAST_CONFIG": "x", "HOLDFAST_TOKEN": "x", "HOLDFAST_LISTEN": "127.0.0.1:1", "HOLDFAST_SECRET": good,
		"HOLDFAST_PORT": "tcp://10.0.0.1:8420", "HOLDFAST_PORT_8420_TCP": "x", "HOLDFAST_SERVICE_HOST": "x",
		"OTHER": "x",
	})
	env.Known = []string{"HOLDFAST_TOKEN"}
	text := "destinations: {a: {url: \"http://h\", secret: {env: HOLDFAST_SECRET}}}\n"
	_, warnings, err := config.Parse("f", []byte(text), env, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	want := []string{
		"HOLDFAST_COLOUR: is a variable that Holdfast does not know; it has no effect",
		"HOLDFAST_LISTN: is a variable that Holdfast does not know; did you mean HOLDFAST_LISTEN?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestBadVariableNamesItself(t *testing.T) {
	t.Parallel()
	env := world(map[string]string{"HOLDFAST_STORE_UNENCRYPTED": "maybe", "HOLDFAST_INSECURE": "1", "HOLDFAST_LOG_LEVEL": "loud", "HOLDFAST_DATA": "~/x", "HOLDFAST_NODE_ID": "a/b"})
	_, _, err := config.Load("", env, config.Overrides{})
	var got []string
	for _, f := range faults(t, err) {
		got = append(got, f.Origin+" "+f.Path)
	}
	slices.Sort(got)
	want := []string{"HOLDFAST_DATA data", "HOLDFAST_INSECURE insecure", "HOLDFAST_LOG_LEVEL log.level", "HOLDFAST_NODE_ID node.id", "HOLDFAST_STORE_UNENCRYPTED storeUnencrypted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestProcessSeesThisProcess(t *testing.T) {
	t.Setenv("HOLDFAST_NODE_ID", "from-here")
	c, _, err := config.Load("", config.Process(nil), config.Overrides{})
	if err != nil || c.Node.ID != "from-here" {
		t.Errorf("got %v, error %v", c, err)
	}
}

// within returns an absolute path in the working directory.
func within(tb testing.TB, path string) string {
	tb.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		tb.Fatal(err)
	}
	return abs
}
