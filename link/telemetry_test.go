package link_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// batchesAtOnce is how many batches come in any order.
const batchesAtOnce = 4

var auditRecords = flag.Int("auditrecords", 20000, "how many audit records a site has that was away")

// copies is central's end of telemetry: a real store, that a test can exchange or break.
type copies struct {
	mu    sync.Mutex
	to    sites.Copies
	fault error
	lies  func(c *sites.Copy)
	first []int64 // numbers of the first records of the batches that came
	fifth func()  // is called before the fifth of them
}

func (c *copies) now() (sites.Copies, func(c *sites.Copy), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.to, c.lies, c.fault
}

func (c *copies) set(change func(c *copies)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *copies) Copy(ctx context.Context, site string, b *sites.Batch) (out sites.Copy, err error) {
	to, lies, fault := c.now()
	c.set(func(c *copies) {
		if c.first = append(c.first, b.First); len(c.first) == 5 && c.fifth != nil {
			c.fifth()
		}
	})
	if fault != nil {
		return out, fault
	}
	if out, err = to.Copy(ctx, site, b); lies != nil {
		lies(&out)
	}
	return out, err
}

func (c *copies) Copied(ctx context.Context, site string, origins []string) ([]sites.Copy, error) {
	to, lies, fault := c.now()
	if fault != nil {
		return nil, fault
	}
	list, err := to.Copied(ctx, site, origins)
	for i := range list {
		if lies != nil {
			lies(&list[i])
		}
	}
	return list, err
}

// takes makes a central that takes telemetry.
func (c *copies) takes(conf *link.CentralConfig) { conf.Copies = c }

// begin has telemetry go into the world's own store.
func (c *copies) begin(w *world) { c.to = nodestore.New(w.db, nil).Telemetry }

// logged is a site with an audit log.
type logged struct {
	*plant
	log    int64
	origin string

	mu   sync.Mutex // records may be appended while a batch is on its way
	size int64
	head audit.Hash
}

// end returns how many records the log has, and the chain hash of the last one.
func (p *logged) end() (size int64, head audit.Hash) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size, p.head
}

func (w *world) logged(name string, edit ...func(c *link.SiteConfig)) *logged {
	w.t.Helper()
	p := &logged{}
	p.plant = w.site(name, edit...)
	p.conf.Telemetry = nodestore.New(p.db, nil).Telemetry
	p.renew()
	p.open(name)
	return p
}

// open begins a log, as a store does at first, and after it was restored.
func (p *logged) open(site string) {
	p.w.t.Helper()
	p.log++
	p.origin, p.size, p.head = audit.Origin(site, "n", fmt.Sprint(p.log)), 0, audit.Hash{}
	p.put(func(tx side.Tx) error { return tx.Put(p.row()) })
}

func (p *logged) row() *rows.AuditLog {
	return &rows.AuditLog{Log: p.log, Origin: p.origin, Own: true, Opened: rows.Now, Size: p.size, Head: p.head[:]}
}

func (p *logged) put(f func(tx side.Tx) error) {
	p.w.t.Helper()
	if err := p.db.Side().Change(p.w.t.Context(), side.Cost{}, f); err != nil {
		p.w.t.Fatal(err)
	}
}

// records appends records, as the appender does.
func (p *logged) records(n int) {
	p.w.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for n > 0 {
		var list []rows.Row
		for range min(n, 500) {
			r := audit.Record{
				ID: holdfast.NewID(), Occurred: time.Now(), Channel: audit.APIOutbound, Kind: audit.CachedCall, Status: audit.Delivered, Site: p.name, Node: "n",
				Correlation: string(holdfast.NewID()),
			}
			leaf, _, err := r.Leaf()
			if err != nil {
				p.w.t.Fatal(err)
			}
			p.size++
			p.head = audit.ChainHash(p.size, p.head, audit.LeafHash(leaf))
			list = append(list, &rows.AuditRecord{Log: p.log, Seq: p.size, ID: r.ID, Stored: rows.Now, Site: p.name, Leaf: leaf, Hash: bytes.Clone(p.head[:])})
		}
		n -= len(list)
		p.put(func(tx side.Tx) error { return tx.Put(append(list, p.row())...) })
	}
}

// there counts the records of a log that a store has.
func there(t *testing.T, db *sqlite.DB, origin string) (n int64, head []byte) {
	t.Helper()
	if err := db.Side().Read(t.Context(), `SELECT count(*), coalesce(max(l.head), x'') FROM hf_audit AS a JOIN hf_audit_log AS l ON l.log = a.log WHERE l.origin = $1`, []any{origin},
		func(scan side.Scan) error { return scan(&n, &head) }); err != nil {
		t.Fatal(err)
	}
	return n, bytes.Clone(head)
}

// arrived waits until central has the whole log, and checks that it is the site's.
func (p *logged) arrived(within time.Duration, db *sqlite.DB) {
	p.w.t.Helper()
	p.w.eventually(within, "all audit records arrived", func() bool {
		n, _ := there(p.w.t, db, p.origin)
		size, _ := p.end()
		return n == size
	})
	_, want := p.end()
	if _, head := there(p.w.t, db, p.origin); !bytes.Equal(head, want[:]) {
		p.w.t.Error("central has another log than the site")
	}
}

func TestASiteThatWasAwayForDaysSendsItsAuditLog(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "three days without central")
	c := &copies{}
	within(t, func(w *world) {
		c.begin(w)
		p := w.logged("plant")
		p.records(10)
		p.run(false)
		defer p.stop()
		p.arrived(time.Minute, w.db)
		w.away()
		for range 3 {
			p.records(*auditRecords / 3)
			<-time.After(24 * time.Hour)
		}
		before := p.size
		c.set(func(c *copies) { c.first, c.fifth = nil, func() { p.records(3) } })
		w.start()
		p.arrived(time.Hour, w.db)
		c.set(func(c *copies) {
			if live := slices.IndexFunc(c.first, func(n int64) bool { return n > before }); live < 5 || live > 12 {
				w.t.Errorf("batches came from %d; want those from %d among the first, and the others from the oldest", c.first, before+1)
			}
			if n := len(c.first); n > 2+*auditRecords/500+batchesAtOnce {
				w.t.Errorf("%d batches for %d records", n, *auditRecords)
			}
		})
		w.eventually(10*time.Second, "nothing is behind", func() bool { return p.Status().Telemetry.Backlog == 0 && p.Shipped(p.origin) == p.size })
	}, c.takes)
}

// Central goes back to yesterday's copy, and the site hears of it from the next answer.
func TestTelemetryHealsWhatCentralLost(t *testing.T) {
	t.Parallel()
	c := &copies{}
	within(t, func(w *world) {
		c.begin(w)
		yesterday := open(w.t, "yesterday")
		p := w.logged("plant")
		p.run(false)
		defer p.stop()
		c.set(func(c *copies) { c.to = nodestore.New(yesterday, nil).Telemetry })
		p.records(700)
		p.arrived(time.Minute, yesterday)
		c.set(func(c *copies) { c.to = nodestore.New(w.db, nil).Telemetry })
		p.records(1200)
		p.arrived(2*time.Minute, w.db)
		c.set(func(c *copies) { c.to = nodestore.New(yesterday, nil).Telemetry })
		p.arrived(2*time.Minute, yesterday) // nothing new happens at the site
	}, c.takes)
}

func TestTelemetryOfASiteThatWasRestored(t *testing.T) {
	t.Parallel()
	c := &copies{}
	within(t, func(w *world) {
		c.begin(w)
		p := w.logged("plant")
		p.records(20)
		yesterday := *p.row()
		yesterday.Head = bytes.Clone(p.head[:])
		p.records(10)
		p.run(false)
		defer p.stop()
		p.arrived(time.Minute, w.db)
		p.stop()
		former := p.origin
		p.open("plant")
		p.put(func(tx side.Tx) error { return tx.Put(&yesterday) }) // a site sends what the row of its log counts
		p.records(5)
		p.renew()
		p.run(false)
		p.arrived(time.Minute, w.db)
		w.eventually(5*time.Minute, "all is well", func() bool {
			s := p.Status().Telemetry
			return s.Problem == "" && s.Backlog == 0 && p.Shipped(former) == yesterday.Size
		})
		if n, _ := there(w.t, w.db, former); n != 30 {
			w.t.Errorf("central has %d records of the former log, want 30", n)
		}
	}, c.takes)
}

func TestTelemetryWaitsForCentralsStore(t *testing.T) {
	t.Parallel()
	c := &copies{}
	within(t, func(w *world) {
		c.begin(w)
		p := w.logged("plant")
		p.run(true)
		defer p.stop()
		c.set(func(c *copies) { c.fault = holdfast.ErrDiskFull })
		p.records(20)
		p.plant.put(0, 20)
		p.delivered(time.Minute) // messages do not wait for telemetry
		<-time.After(2 * time.Hour)
		if s := p.Status().Telemetry; s.Problem == "" || s.Backlog == 0 || p.Shipped(p.origin) != 0 {
			w.t.Errorf("got %+v, shipped %d; want a problem, and what waits", s, p.Shipped(p.origin))
		}
		if s := p.Status().Telemetry; s.Lasts() < 2*time.Hour || s.Lasts() > 2*time.Hour+time.Minute {
			w.t.Errorf("the oldest record waits for %s, want 2h", s.Lasts())
		}
		unsent := func() (int64, time.Duration, string) {
			all, err := w.central.Sites(w.t.Context())
			if err != nil {
				w.t.Fatal(err)
			}
			return all[0].Unsent()
		}
		if n, lasts, problem := unsent(); n != 20 || lasts < 2*time.Hour-time.Minute || lasts > 2*time.Hour+2*time.Minute || problem == "" {
			w.t.Errorf("central says that %d records wait for %s, %q; want 20 for 2h, and a problem", n, lasts, problem)
		}
		c.set(func(c *copies) { c.fault = nil })
		p.arrived(time.Minute, w.db)
		w.eventually(2*time.Minute, "well", func() bool {
			n, lasts, problem := unsent()
			return p.Status().Telemetry == link.Telemetry{At: p.Status().Telemetry.At} && n == 0 && lasts == 0 && problem == ""
		})
	}, c.takes)
}

func TestAnOlderCentralTakesNoTelemetry(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		p := w.logged("plant")
		p.records(20)
		p.plant.put(0, 20)
		p.run(true)
		defer p.stop()
		p.delivered(time.Minute)
		w.eventually(time.Minute, "it says so", func() bool { return strings.Contains(p.Status().Telemetry.Problem, "404") })
		if n := p.Shipped(p.origin); n != 0 {
			w.t.Errorf("records up to %d may be purged", n)
		}
	})
}

func TestAHostileCentralSpoilsNoAuditLog(t *testing.T) {
	t.Parallel()
	for name, lies := range map[string]func(c *sites.Copy){
		"more than there is":    func(c *sites.Copy) { c.Size = 1e18 },
		"less than nothing":     func(c *sites.Copy) { c.Size = -1 },
		"another log":           func(c *sites.Copy) { c.Origin = "holdfast/other/n/1" },
		"gaps beyond its size":  func(c *sites.Copy) { c.Gaps = []sites.Range{{First: 5, Last: 1e18}} },
		"gaps that overlap":     func(c *sites.Copy) { c.Gaps = []sites.Range{{First: 1, Last: 3}, {First: 2, Last: 3}} },
		"gaps that are no gaps": func(c *sites.Copy) { c.Gaps = []sites.Range{{First: 3, Last: 2}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &copies{}
			within(t, func(w *world) {
				c.begin(w)
				c.set(func(c *copies) { c.lies = lies })
				p := w.logged("plant")
				p.records(20)
				p.run(false)
				defer p.stop()
				w.eventually(time.Minute, "it says so", func() bool { return strings.Contains(p.Status().Telemetry.Problem, "cannot be") })
				<-time.After(time.Hour)
				if n := p.Shipped(p.origin); n != 0 {
					w.t.Errorf("records up to %d may be purged", n)
				}
				c.set(func(c *copies) { c.lies = nil })
				p.arrived(5*time.Minute, w.db)
			}, c.takes)
		})
	}
}

func TestAForeignAuditLogIsRefusedAndSaid(t *testing.T) {
	t.Parallel()
	c := &copies{}
	within(t, func(w *world) {
		c.begin(w)
		p := w.logged("plant")
		p.records(5)
		good := &logged{plant: p.plant, log: p.log, origin: p.origin, size: p.size, head: p.head}
		p.open("other") // this log is named after another site than its records
		p.records(5)
		p.run(false)
		defer p.stop()
		said := func() bool {
			all, err := w.central.Sites(w.t.Context())
			return err == nil && len(all) == 1 && strings.Contains(all[0].Telemetry.Problem, "not of this site") && strings.Contains(p.Status().Telemetry.Problem, "not of this site")
		}
		w.eventually(5*time.Minute, "both ends say so", said)
		good.records(5)
		good.arrived(time.Minute, w.db)
		if <-time.After(10 * time.Minute); !said() {
			w.t.Error("it is forgotten when another log gets on")
		}
		n, _ := there(w.t, w.db, audit.Origin("plant", "n", "1"))
		if m, _ := there(w.t, w.db, p.origin); n != 10 || m != 0 {
			w.t.Errorf("central has %d records of the site's log and %d of the other, want 10 and 0", n, m)
		}
	}, c.takes)
}

// SF-34: the record of an attempt and how its operation stands come together.
func TestSF34ACallComesWithItsRecord(t *testing.T) {
	t.Parallel()
	c := &copies{}
	within(t, func(w *world) {
		c.begin(w)
		var mu sync.Mutex
		var asked []holdfast.ID
		p := w.logged("plant", func(c *link.SiteConfig) {
			c.Call = func(_ context.Context, id holdfast.ID) (sites.Call, bool) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, id)
				return sites.Call{ID: id, Revision: 1, Status: "delivered", Created: 7, Ended: 8}, true
			}
		})
		p.records(3)
		p.run(false)
		defer p.stop()
		p.arrived(time.Minute, w.db)
		page, err := nodestore.New(w.db, nil).SiteCalls.SiteCalls(w.t.Context(), &sites.CallFilter{Limit: 10, Site: "plant"})
		mu.Lock()
		defer mu.Unlock()
		if err != nil || len(page.Calls) != 3 || len(asked) != 3 {
			w.t.Errorf("central has %d calls, %v; the site was asked for %d, want 3", len(page.Calls), err, len(asked))
		}
	}, c.takes)
}
