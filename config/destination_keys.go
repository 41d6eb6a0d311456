package config

import (
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

const maxConcurrency = 1000

func destinationsKey(kinds []adapter.Kind) setting.Entry[Config] {
	keys := slices.Concat(kindKeys(kinds), destinationKeys())
	m := setting.Each("NAME", keys)
	m.Read = func(l *setting.Loader, path string, n *yaml.Node) Destination {
		d := DefaultDestination()
		if slices.ContainsFunc(kinds, func(k adapter.Kind) bool { return setting.HasKey(n, k.Key.Name) }) {
			d = DefaultForeign()
		}
		l.Object(path, n, keys.Decoders(l, &d))
		oneKind(l.Report, path, kinds)
		return d
	}
	m.Check = func(r *setting.Report, path string, d Destination) {
		if givenKinds(r, path, kinds) > 1 { // already a fault, and the intended kind is unknown
			return
		}
		checkDestination(r, path, d)
		keys.Check(r, path, &d)
	}
	e := setting.Named("destinations", func(c *Config) *map[string]Destination { return &c.Destinations }, m)
	e.Reset = func(c *Config) { c.Destinations = map[string]Destination{} }
	return e
}

func kindKeys(kinds []adapter.Kind) (keys setting.Section[Destination]) {
	for _, k := range kinds {
		keys = append(keys, setting.Within(func(d *Destination) *adapter.Settings { return &d.Foreign }, k.Key))
	}
	return keys
}

// givenKinds returns how many kinds a destination has.
func givenKinds(r *setting.Report, path string, kinds []adapter.Kind) (n int) {
	for _, k := range kinds {
		if r.Given(setting.Join(path, k.Key.Name)) {
			n++
		}
	}
	return n
}

// oneKind reports a second kind.
func oneKind(r *setting.Report, path string, kinds []adapter.Kind) {
	first := ""
	for _, k := range kinds {
		switch name := k.Key.Name; {
		case !r.Given(setting.Join(path, name)):
		case first == "":
			first = name
		default:
			r.Fault(setting.Join(path, name), "", setting.Problem{What: "stands beside " + first + ", but a destination can only be one of the two", Fix: "make two destinations of it"})
		}
	}
}

// kinds returns the kinds of the destinations.
func (c *Config) kinds() []adapter.Kind {
	found := map[string]adapter.Kind{}
	for _, d := range c.Destinations {
		if d.Foreign != nil {
			k := d.Foreign.Kind()
			found[k.Key.Name] = k
		}
	}
	return slices.Collect(maps.Values(found))
}

func destinationKeys() setting.Section[Destination] {
	ofPeer := func(_ any, d *Destination) bool { return d.Foreign == nil }
	return setting.Section[Destination]{
		setting.Key("url", func(d *Destination) *string { return &d.URL }, setting.Words[string]("http://127.0.0.1:8421", nil), "",
			"Where the peer listens. Credentials, a query and a fragment are refused. `grpc` and `pipe` are for a later version.").
			Tells("`http://…`, `https://…`, `unix:///path/of/socket`", "must be set").Only(ofPeer),
		setting.SecretKey("secret", func(d *Destination) *Secret { return &d.Secret }, (*setting.Loader).Secret,
			setting.Row{Path: "env", Doc: "Variable that holds the secret of both, in base64.", Values: setting.VariableCell, Usual: "this or `file` must be set"},
			setting.Row{Path: "file", Doc: "File that holds it.", Values: "path", Usual: "this or `env` must be set"}).Only(ofPeer),
		setting.Key("hmac", func(d *Destination) *HMAC { return &d.HMAC }, setting.Word(HMACv2, HMACv2, HMACv1), HMACv2,
			"Form of the signature. `v1` is `rf-hmac`, for peers that know no better: it does not cover the time.").Only(ofPeer),
		setting.Maybe("to", func(d *Destination) *string { return &d.To }, setting.Name("central-a"),
			"The receiver's `node.id` or `node.source`. It is signed: another receiver that has the same secret refuses what it did not get from here.").
			Tells("", "none: not signed").Only(ofPeer),
		retryKey(),
		setting.Key("ttl", func(d *Destination) *time.Duration { return &d.TTL }, setting.PeriodOr("none", time.Second, setting.MaxTime), setting.Day,
			"A message that has not arrived after this time expires."),
		setting.Key("timeout", func(d *Destination) *time.Duration { return &d.Timeout }, setting.Period(time.Millisecond, time.Hour), 30*time.Second, "Longest time of one attempt."),
		setting.Key("concurrency", func(d *Destination) *int { return &d.Concurrency }, setting.Count(1, maxConcurrency, "", "20"), 20, "The most requests in flight."),
		setting.Key("charge", func(d *Destination) *Charge { return &d.Charge }, setting.Word(ChargeConnected, ChargeConnected, ChargeEveryAttempt), ChargeConnected,
			"Which failed attempts count against `retries`. `connected`: only attempts that reached the peer; while it is away, messages wait without using up retries. `every_attempt`: all."),
		setting.Key("order", func(d *Destination) *Order { return &d.Order }, setting.Word(OrderNone, OrderNone, OrderStrict), OrderNone,
			"What a parked message does to later ones with the same ordering key. `none`: nothing. `strict`: they wait until a person decides."),
		setting.Key("schedule", func(d *Destination) *Schedule { return &d.Schedule }, setting.Word(ScheduleLane, ScheduleLane, ScheduleMessage), ScheduleLane,
			"When messages are tried while the destination is down. `lane`: one message at a time probes it, first after 2 s, then at most every 5 min, sooner if a new one comes; the others wait. `message`: each keeps exactly its own schedule, as webhooks promise; up to `concurrency` requests at a time may fail."),
		setting.Maybe("ca", func(d *Destination) *string { return &d.CA }, setting.File("ca.pem"), "Certificates of an additional CA, PEM, for `https`.").
			Tells("", "the system's CAs only").Only(ofPeer),
	}
}
