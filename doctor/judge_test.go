package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/doctor"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/transport"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 2, 14, 12, 0, 0, 0, time.UTC)

// healthy is what a node finds that has nothing wrong.
func healthy() *doctor.Findings {
	c := config.Default()
	c.Node.ID = "plant-7"
	c.Destinations["inventory"] = config.DefaultDestination()
	return &doctor.Findings{
		Now:     noon,
		Program: doctor.Program{Version: "1.2.3", Go: "go1.26.0", Platform: "linux/amd64"},
		Config:  doctor.ConfigFound{File: "holdfast.yaml", Config: c},
		Data:    "/var/lib/holdfast",
		Folder:  doctor.FolderFound{Exists: true, IsDir: true, Mode: fs.ModeDir | 0o750},
		Files:   []doctor.FileFound{{What: "the secret of destination inventory", Path: "/etc/holdfast/inventory", Mode: 0o600}},
		Owner:   doctor.OwnerFound{Holder: sqlite.Holder{Held: true, PID: 42, Host: "plant", Since: noon.Add(-time.Hour)}, Here: true, Alive: true},
		File: doctor.FileContent{
			Size: 200 << 20, Log: 4 << 20,
			Inspection: sqlite.Inspection{
				SQLite: "3.54.1", WAL: true, Schema: 1, Newest: 1, Latest: noon.Add(-time.Second), Waiting: []string{"inventory"},
				Integrity: sqlite.Integrity{Checked: 11, Tables: 11, Took: 120 * time.Millisecond},
				Rows:      sqlite.RowCheck{Messages: 300, InboxIDs: 20, Took: 30 * time.Millisecond},
			},
		},
		Disk:   doctor.DiskFound{Kind: "ext4", Free: 80 << 30, Total: 100 << 30, Files: 1e6, Inodes: 2e6},
		Sync:   doctor.SyncFound{Count: 50, Median: 800 * time.Microsecond, P99: 4 * time.Millisecond},
		Listen: doctor.ListenFound{Address: "127.0.0.1:8420", Taken: true},
		Running: doctor.RunningFound{URL: "http://127.0.0.1:8420", Node: true, Health: &api.Health{
			Status: api.OK, Node: "plant-7", Version: "1.2.3", Started: noon.Add(-time.Hour),
			Checks: []api.Check{{Name: "store", Status: api.OK, Detail: "durability local"}},
		}},
		Cert: &doctor.CertFound{Path: "/etc/holdfast/cert.pem", Until: noon.AddDate(0, 2, 0)},
		Peers: []doctor.PeerFound{{
			Name: "inventory", URL: "https://inventory.example", Until: noon.AddDate(0, 1, 0), Sent: noon, Came: noon.Add(30 * time.Millisecond),
			Probed: transport.Probed{Status: 200, Peer: true, Credentials: transport.CredentialsAccepted, Date: noon},
		}},
		Local:   []doctor.LocalFound{{Endpoint: "ReserveStock", Address: "127.0.0.1:9000"}},
		Backups: doctor.BackupsFound{Exists: true, Count: 7, Newest: "2026-02-14.db", At: noon.Add(-2 * time.Hour)},
	}
}

func TestAHealthyNodeHasNothingButOK(t *testing.T) {
	t.Parallel()
	r := doctor.Judge(healthy())
	if r.Status != doctor.OK || r.OK != len(r.Checks) {
		t.Errorf("got %s:\n%s", r.Status, r.String())
	}
}

func failed(o holdfast.Outcome, code string) error {
	return &holdfast.Failure{Outcome: o, Code: code, Err: errors.New("it went wrong")}
}

// Each finding changes one check of a healthy node, and no other for the worse.
func TestEachFindingHasItsJudgement(t *testing.T) {
	t.Parallel()
	peer := func(change func(p *doctor.PeerFound)) func(f *doctor.Findings) {
		return func(f *doctor.Findings) { change(&f.Peers[0]) }
	}
	status := func(code int) func(f *doctor.Findings) {
		return peer(func(p *doctor.PeerFound) { p.Probed = transport.Probed{Status: code} })
	}
	unreached := func(o holdfast.Outcome, code string) func(f *doctor.Findings) {
		return peer(func(p *doctor.PeerFound) { p.Err, p.Probed = failed(o, code), transport.Probed{} })
	}
	clock := func(off time.Duration) func(f *doctor.Findings) {
		return peer(func(p *doctor.PeerFound) { p.Probed.Date = noon.Add(-off) })
	}
	stopped := func(f *doctor.Findings) {
		f.Owner.Held, f.Listen.Taken, f.Running = false, false, doctor.RunningFound{}
	}
	for name, c := range map[string]struct {
		change func(f *doctor.Findings)
		check  string // the one that has the status
		want   doctor.Status
		says   string // in its detail, hint or items
	}{
		"faults": {func(f *doctor.Findings) { f.Config.Faults = []string{"holdfast.yaml:3: nod: is not known"} }, "configuration", doctor.Failing, "holdfast.yaml:3"},
		"config warnings": {
			func(f *doctor.Findings) { f.Config.Warnings = []string{"holdfast.yaml:9: ttl"} }, "configuration", doctor.Warning, "holdfast.yaml:9",
		},
		"a secret for everybody": {
			func(f *doctor.Findings) { f.Files[0].Mode = 0o644 }, "permissions of the secret of destination inventory", doctor.Warning, "chmod 0640 /etc/holdfast/inventory",
		},
		"the same in a shut folder": {
			func(f *doctor.Findings) { f.Files[0].Mode, f.Files[0].Shut = 0o644, true }, "permissions of the secret of destination inventory", doctor.OK, "keeps others out",
		},
		"a secret that cannot be looked at": {
			func(f *doctor.Findings) { f.Files[0].Err = fs.ErrPermission }, "permissions of the secret of destination inventory", doctor.Warning, "permission",
		},
		"a certificate that ends soon": {func(f *doctor.Findings) { f.Cert.Until = noon.AddDate(0, 0, 13) }, "certificate of this node", doctor.Warning, "13 days"},
		"one that has ended":           {func(f *doctor.Findings) { f.Cert.Until = noon.Add(-time.Hour) }, "certificate of this node", doctor.Failing, "ended"},
		"one that cannot be read":      {func(f *doctor.Findings) { f.Cert.Err = errors.New("no PEM") }, "certificate of this node", doctor.Failing, "no PEM"},

		"stopped": {stopped, "ownership", doctor.OK, "no node owns the database; the last was process 42"},
		"never started": {func(f *doctor.Findings) {
			stopped(f)
			f.Owner = doctor.OwnerFound{Err: fs.ErrNotExist}
		}, "ownership", doctor.OK, "no node has ever"},
		"the lock cannot be read": {func(f *doctor.Findings) {
			stopped(f)
			f.Owner = doctor.OwnerFound{Err: fs.ErrPermission}
		}, "ownership", doctor.Warning, "as the user of the node"},
		"an owner that is not seen":     {func(f *doctor.Findings) { f.Owner.Alive = false }, "ownership", doctor.Warning, "another container"},
		"an owner on another machine":   {func(f *doctor.Findings) { f.Owner.Here = false }, "ownership", doctor.Warning, "two machines"},
		"an owner without a name":       {func(f *doctor.Findings) { f.Owner.PID = 0 }, "ownership", doctor.OK, "no name"},
		"another program at the port":   {func(f *doctor.Findings) { stopped(f); f.Listen.Taken = true; f.Running.Err = errors.New("odd") }, "address", doctor.Failing, "another program"},
		"another node at the port":      {func(f *doctor.Findings) { f.Owner.Held = false }, "address", doctor.Failing, "does not own this database"},
		"a node of another name":        {func(f *doctor.Findings) { f.Running.Health.Node = "plant-8" }, "address", doctor.Warning, "plant-8"},
		"an owner that does not listen": {func(f *doctor.Findings) { stopped(f); f.Owner.Held = true }, "address", doctor.Warning, "nobody listens"},
		"an address that is silent":     {func(f *doctor.Findings) { f.Listen.Err = os.ErrDeadlineExceeded }, "address", doctor.Warning, "neither"},
		"an address of elsewhere":       {func(f *doctor.Findings) { f.Listen.Foreign = true }, "address", doctor.Failing, "not an address of this machine"},
		"a node that hangs": {func(f *doctor.Findings) {
			f.Running = doctor.RunningFound{Err: fmt.Errorf("%w: %w", client.ErrUnreachable, context.DeadlineExceeded)}
		}, "address", doctor.Failing, "hangs"},
		"any port": {func(f *doctor.Findings) { f.Listen.AnyPort = true }, "address", doctor.Skipped, "--url"},
		// F1-21: nobody can operate it, whether it starts or not.
		"no token that operates": {func(f *doctor.Findings) {
			f.Config.Config.Tokens, f.Config.Config.Role, f.File.Sites, f.File.Waiting = config.TokensAlways, config.CentralOfSites, 3, nil
		}, "tokens", doctor.Failing, "sites and peers are served, but nobody can operate the node"},
		"no token at all": {func(f *doctor.Findings) {
			f.Config.Config.Tokens, f.File.Waiting = config.TokensAlways, nil
		}, "tokens", doctor.Failing, "make one with: holdfast tokens create NAME --role admin --data "},
		"tokens": {func(f *doctor.Findings) { f.Config.Config.Tokens, f.File.Admins = config.TokensAlways, 1 }, "tokens", doctor.OK, "1 with the role admin for good"},
		"no token": {func(f *doctor.Findings) {
			f.Running.Health, f.Running.Err = nil, errors.New("no token was given")
		}, "health", doctor.Skipped, "--token-file"},
		"degraded": {func(f *doctor.Findings) {
			f.Running.Health.Status = api.Degraded
			f.Running.Health.Checks = append(f.Running.Health.Checks, api.Check{Name: "destination inventory", Status: api.Degraded, Detail: "down: refused"})
		}, "health", doctor.Warning, "down: refused"},
		"failing": {func(f *doctor.Findings) { f.Running.Health.Status = api.Failing }, "health", doctor.Failing, "failing"},
		"secrets that open": {func(f *doctor.Findings) {
			f.Running.Keys = &api.KeyList{Keys: []api.Key{{State: "newest", Values: 3}, {State: "former", Values: 2}}}
		}, "secrets", doctor.OK, "all 5 that came by the API open, 2 of them with former keys"},
		"secrets that are not told of": {func(f *doctor.Findings) { f.Running.KeysErr = os.ErrDeadlineExceeded }, "secrets", doctor.Skipped, "whether they open"},
		"a key that is away": {func(f *doctor.Findings) {
			f.Running.Keys = &api.KeyList{Keys: []api.Key{{State: "missing", Values: 1}}, Broken: 1, Problems: []api.KeyProblem{{Where: "channel/mail", Why: "sealed with key 3d8b42579421"}}}
		}, "secrets", doctor.Failing, "channel/mail: sealed with key 3d8b42579421"},
		"another release runs": {func(f *doctor.Findings) { f.Running.Health.Version = "1.2.2" }, "version of the node", doctor.Warning, "1.2.2"},

		"no folder":                 {func(f *doctor.Findings) { stopped(f); f.Folder.Err, f.File.Err = fs.ErrNotExist, fs.ErrNotExist }, "data folder", doctor.Warning, "mounted"},
		"a folder of others":        {func(f *doctor.Findings) { f.Folder.Err = fs.ErrPermission }, "data folder", doctor.Warning, "as the user of the node"},
		"a folder that breaks":      {func(f *doctor.Findings) { f.Folder.Err = syscall.EIO }, "data folder", doctor.Failing, "disk"},
		"no folder but a file":      {func(f *doctor.Findings) { f.Folder.IsDir = false }, "data folder", doctor.Failing, "not a folder"},
		"not for this user":         {func(f *doctor.Findings) { f.Folder.Write = fs.ErrPermission }, "data folder", doctor.Warning, "as the user of the node"},
		"read-only":                 {func(f *doctor.Findings) { f.Folder.Write = syscall.EROFS }, "data folder", doctor.Failing, "mount its disk for writing"},
		"a folder for all":          {func(f *doctor.Findings) { f.Folder.Mode = 0o755 }, "data folder", doctor.Warning, "chmod 0750"},
		"the same below a shut one": {func(f *doctor.Findings) { f.Folder.Mode, f.Folder.Shut = 0o755, true }, "data folder", doctor.OK, ""},
		"no file":                   {func(f *doctor.Findings) { stopped(f); f.File = doctor.FileContent{Err: fs.ErrNotExist} }, "database", doctor.Warning, "backup"},
		"damage":                    {func(f *doctor.Findings) { f.File.Err = sqlite.ErrDamaged }, "database", doctor.Failing, "keep a copy"},
		"a log that waits":          {func(f *doctor.Findings) { f.File.Err = sqlite.ErrLogWaits }, "database", doctor.Warning, "do not delete the log"},
		"it cannot be read":         {func(f *doctor.Findings) { f.File.Err = fs.ErrPermission }, "database", doctor.Warning, "as the user"},
		"a log that grows":          {func(f *doctor.Findings) { f.File.Log = 300 << 20 }, "database", doctor.Warning, "300.0 MiB"},
		"a newer release":           {func(f *doctor.Findings) { f.File.Schema = 2 }, "schema", doctor.Failing, "use the release that wrote it"},
		"an older release":          {func(f *doctor.Findings) { f.File.Newest = 2 }, "schema", doctor.OK, "brings it to 2"},
		"no tables":                 {func(f *doctor.Findings) { f.File.Schema = 0 }, "schema", doctor.OK, "makes them"},
		"problems":                  {func(f *doctor.Findings) { f.File.Integrity.Problems = []string{"row 7 missing"} }, "integrity", doctor.Failing, "row 7 missing"},
		"not all was checked": {func(f *doctor.Findings) {
			f.File.Integrity.Checked, f.File.Integrity.Left = 10, []string{"hf_message"}
		}, "integrity", doctor.OK, "10 of 11 tables"},
		"F1-111: rows that changed": {func(f *doctor.Findings) {
			f.File.Rows.Broken, f.File.Rows.Rows = 1, []sqlite.BrokenRow{{ID: "m7", Destination: "erp"}}
		}, "rows", doctor.Failing, "message m7 for erp"},
		"F1-111: a sample of the rows":       {func(f *doctor.Findings) { f.File.Rows.Cut = true }, "rows", doctor.OK, "a sample, the oldest 300 messages"},
		"F1-111: rows known to have changed": {func(f *doctor.Findings) { f.File.Rows.Known = 2 }, "rows", doctor.OK, "but for 2 damaged ones that are known or discarded"},
		"set aside": {func(f *doctor.Findings) {
			f.Damaged = []sqlite.Damage{{File: "holdfast.db.damaged-1", Done: true, Lost: 1}}
		}, "files set aside", doctor.Failing, "rows lost: 1"},
		"set aside, a value of a row lost": {func(f *doctor.Findings) {
			f.Damaged = []sqlite.Damage{{File: "holdfast.db.damaged-1", Done: true, Mended: 1}}
		}, "files set aside", doctor.Failing, "a value is lost: 1"},
		"set aside, salvaged":  {func(f *doctor.Findings) { f.Damaged = []sqlite.Damage{{File: "holdfast.db.damaged-1", Done: true}} }, "files set aside", doctor.Warning, "all of their rows"},
		"an old backup":        {func(f *doctor.Findings) { f.Backups.At = noon.Add(-27 * time.Hour) }, "backups", doctor.Warning, "27h0m0s"},
		"no backup":            {func(f *doctor.Findings) { f.Backups.Count = 0 }, "backups", doctor.Warning, "empty"},
		"backups denied":       {func(f *doctor.Findings) { f.Backups.Err = fs.ErrPermission }, "backups", doctor.Warning, "permission"},
		"no folder of backups": {func(f *doctor.Findings) { f.Backups = doctor.BackupsFound{} }, "backups", doctor.Skipped, "no folder"},

		"another journal": {func(f *doctor.Findings) { f.File.WAL = false }, "journal", doctor.Warning, "another program"},
		"normal, by the node": {
			func(f *doctor.Findings) {
				f.Running.Health.Checks[0].Detail = "durability local, synchronous=NORMAL: the last"
			}, "commits", doctor.Warning, "the running node says",
		},
		"normal, by the file":    {func(f *doctor.Findings) { stopped(f); f.Config.Config.Durability = config.Normal }, "commits", doctor.Warning, "durability: normal"},
		"a disk that lies":       {func(f *doctor.Findings) { f.Sync.Median = 19 * time.Microsecond }, "sync speed", doctor.Warning, "acknowledges without writing"},
		"a slow disk":            {func(f *doctor.Findings) { f.Sync.Median = 31 * time.Millisecond }, "sync speed", doctor.Warning, "slow"},
		"a disk that breaks":     {func(f *doctor.Findings) { f.Sync.Err = syscall.EIO }, "sync speed", doctor.Failing, "input/output"},
		"not measured":           {func(f *doctor.Findings) { f.Sync.Skipped = "no room" }, "sync speed", doctor.Skipped, "no room"},
		"memory":                 {func(f *doctor.Findings) { f.Disk.Kind = "tmpfs" }, "file system", doctor.Warning, "lost with the power"},
		"a container's layer":    {func(f *doctor.Findings) { f.Disk.Kind = "overlay" }, "file system", doctor.Warning, "mount a volume"},
		"a network's disk":       {func(f *doctor.Findings) { f.Disk.Kind = "nfs" }, "file system", doctor.Warning, "locks"},
		"an unknown disk":        {func(f *doctor.Findings) { f.Disk.Kind = "" }, "file system", doctor.Skipped, ""},
		"no room":                {func(f *doctor.Findings) { f.Disk.Free = 63 << 20 }, "space", doctor.Failing, "63.0 MiB free"},
		"little room":            {func(f *doctor.Findings) { f.Disk.Free, f.Disk.Total = 1<<30-1, 4<<30 }, "space", doctor.Warning, "make room"},
		"less than a tenth":      {func(f *doctor.Findings) { f.Disk.Free = 9 << 30 }, "space", doctor.Warning, "9.0 GiB free of 100.0 GiB"},
		"a tenth of a huge disk": {func(f *doctor.Findings) { f.Disk.Free, f.Disk.Total = 60<<30, 10<<40 }, "space", doctor.OK, ""},
		"no room for a copy":     {func(f *doctor.Findings) { f.File.Size = 90 << 30 }, "space", doctor.Warning, "a copy of it does not fit"},
		"no inodes":              {func(f *doctor.Findings) { f.Disk.Files = 0 }, "inodes", doctor.Failing, "no file can be made"},
		"few inodes":             {func(f *doctor.Findings) { f.Disk.Files = 999 }, "inodes", doctor.Warning, "999"},

		"a clock of 1970":          {func(f *doctor.Findings) { f.Now = time.Unix(100, 0); f.Backups.At = f.Now }, "clock", doctor.Failing, "1970"},
		"a clock that runs behind": {func(f *doctor.Findings) { f.File.Latest = noon.Add(time.Minute) }, "clock", doctor.Warning, "1m0s before a time that the database has seen"},
		"29 s after the peer's":    {clock(29 * time.Second), "clock of the destinations", doctor.OK, "within 28s"},
		"32 s after":               {clock(32 * time.Second), "clock of the destinations", doctor.Warning, "31s after the clock of inventory"},
		"32 s before":              {clock(-32 * time.Second), "clock of the destinations", doctor.Warning, "before the clock of inventory"},
		"6 min":                    {clock(6 * time.Minute), "clock of the destinations", doctor.Failing, "signatures are refused from 5m0s on"},
		"no clock told":            {peer(func(p *doctor.PeerFound) { p.Probed.Date = time.Time{} }), "clock of the destinations", doctor.Skipped, ""},

		"parked":      {func(f *doctor.Findings) { f.File.Parked = map[string]int64{"inventory": 3} }, "parked", doctor.Warning, "inventory: 3"},
		"unrouted":    {func(f *doctor.Findings) { f.File.Waiting = []string{"billing", "inventory"} }, "without a destination", doctor.Warning, "billing"},
		"the way out": {func(f *doctor.Findings) { f.File.Waiting = []string{"billing"} }, "without a destination", doctor.Warning, "holdfast messages ls --state pending --destination billing"}, // F1-95
		"of a node":   {func(f *doctor.Findings) { f.File.Waiting = []string{"inventory", "channel:mail", "subscription:shop"} }, "without a destination", doctor.OK, "none"},                     // F1-36
		"a held lane": {func(f *doctor.Findings) { f.File.Held = map[string]string{"inventory": "signature refused"} }, "lanes", doctor.Warning, "inventory: signature refused"},

		"refused":         {unreached(holdfast.Unreachable, transport.CodeRefused), "inventory", doctor.Warning, "nobody listens"},
		"no route":        {unreached(holdfast.Unreachable, transport.CodeNoRoute), "inventory", doctor.Warning, "routes"},
		"silent":          {unreached(holdfast.Transient, transport.CodeTimeout), "inventory", doctor.Warning, "does not answer"},
		"no such host":    {unreached(holdfast.LaneFault, transport.CodeNoHost), "inventory", doctor.Failing, "name"},
		"no name server":  {unreached(holdfast.Unreachable, transport.CodeDNS), "inventory", doctor.Warning, "name server"},
		"an unknown CA":   {unreached(holdfast.LaneFault, transport.CodeCertificate), "inventory", doctor.Failing, "name the CA"},
		"no TLS":          {unreached(holdfast.LaneFault, transport.CodeTLS), "inventory", doctor.Failing, "TLS 1.2"},
		"bad settings":    {unreached(holdfast.LaneFault, "settings"), "inventory", doctor.Failing, "settings"},
		"a redirect":      {status(301), "inventory", doctor.Failing, "never followed"},
		"no such path":    {status(404), "inventory", doctor.Failing, "url is right"},
		"a proxy's 502":   {status(502), "inventory", doctor.Warning, "has a problem"},
		"a web page":      {status(200), "inventory", doctor.Warning, "another program"},
		"another peer":    {status(415), "inventory credentials", doctor.Skipped, "only a message can show it"},
		"a v1 peer":       {peer(func(p *doctor.PeerFound) { p.V1, p.Probed = true, transport.Probed{Status: 405, Peer: true} }), "inventory credentials", doctor.Skipped, "v1"},
		"a wrong secret":  {peer(func(p *doctor.PeerFound) { p.Probed.Status, p.Probed.Credentials = 401, transport.CredentialsRefused }), "inventory credentials", doctor.Failing, "the same secret"},
		"its certificate": {peer(func(p *doctor.PeerFound) { p.Until = noon.AddDate(0, 0, 3) }), "inventory certificate", doctor.Warning, "3 days"},
		"a local program": {func(f *doctor.Findings) { f.Local[0].Err = errors.New("refused") }, "ReserveStock", doctor.Warning, "start the program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := healthy()
			c.change(f)
			r := doctor.Judge(f)
			found := false
			for _, got := range r.Checks {
				if got.Name != c.check {
					if got.Status == doctor.Failing && c.want != doctor.Failing {
						t.Errorf("%s is failing, too: %s", got.Name, got.Detail)
					}
					continue
				}
				found = true
				text := strings.Join(append([]string{got.Detail, got.Hint}, got.Items...), "\n")
				if got.Status != c.want || !strings.Contains(text, c.says) {
					t.Errorf("got %s, want %s and %q in:\n%s", got.Status, c.want, c.says, text)
				}
				if (got.Status == doctor.Warning || got.Status == doctor.Failing) && got.Hint == "" {
					t.Errorf("%s has no way out", got.Name)
				}
			}
			if !found {
				t.Errorf("there is no check %q:\n%s", c.check, r.String())
			}
			if rank(r.Status) < rank(c.want) {
				t.Errorf("got %s in all, want at least %s", r.Status, c.want)
			}
		})
	}
}

func rank(s doctor.Status) int {
	return map[doctor.Status]int{doctor.Warning: 1, doctor.Failing: 2}[s]
}

// What programs read does not change by accident.
func TestTheReportIsTheGoldenOne(t *testing.T) {
	t.Parallel()
	f := healthy()
	f.Config.Warnings = []string{"holdfast.yaml:9: destinations.inventory.ttl: \"1s\" ends before the first retry"}
	f.Files[0].Mode = 0o644
	f.File.Parked = map[string]int64{"inventory": 3, "billing": 1}
	f.File.Latest = noon.Add(time.Hour)
	f.Sync.Median = 5 * time.Microsecond
	f.Damaged = []sqlite.Damage{{File: "holdfast.db.damaged-20260213", At: time.Unix(1, 0).UTC(), Done: true, Lost: 1}}
	f.Peers = append(f.Peers, doctor.PeerFound{
		Name: "billing", URL: "http://billing.example", Err: failed(holdfast.Unreachable, transport.CodeRefused),
	})
	f.Backups = doctor.BackupsFound{}
	r := doctor.Judge(f)
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		t.Fatal(err)
	}
	for file, got := range map[string]string{"report.json": text.String(), "report.txt": r.String()} {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got); go test ./doctor -update writes it:\n%s", file, diff)
		}
	}
}

// A configuration with faults leaves what needs none.
func TestWithoutAConfigurationTheRestIsLookedAt(t *testing.T) {
	t.Parallel()
	f := healthy()
	f.Config = doctor.ConfigFound{File: "holdfast.yaml", Faults: []string{"holdfast.yaml:1: x"}}
	f.Peers, f.Local, f.Cert, f.Listen, f.Running = nil, nil, nil, doctor.ListenFound{}, doctor.RunningFound{}
	r := doctor.Judge(f)
	if r.Failing != 1 || r.Warning != 0 || r.OK < 8 {
		t.Errorf("got:\n%s", r.String())
	}
	f.Data, f.Folder, f.File, f.Owner = "", doctor.FolderFound{}, doctor.FileContent{}, doctor.OwnerFound{}
	if r := doctor.Judge(f); r.Failing != 1 || r.Warning != 0 || !strings.Contains(r.String(), "--data") {
		t.Errorf("got:\n%s", r.String())
	}
}

// What other systems wrote stays in its line.
func TestNothingBreaksItsLine(t *testing.T) {
	t.Parallel()
	f := healthy()
	f.File.Held = map[string]string{"inventory": "refused\n  ok    forged: by the peer"}
	r := doctor.Judge(f)
	if strings.Contains(r.String(), "\n  ok    forged") {
		t.Errorf("got:\n%s", r.String())
	}
}
