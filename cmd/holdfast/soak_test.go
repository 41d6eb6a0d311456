package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

var soakFor = flag.Duration("soak", 5*time.Second, "how long TestSoak runs")

// TestSoak lets a sender and a receiver run under steady traffic, through
// outages, parked and expired messages, purges, and readers that hold a
// snapshot of the file; memory, file descriptors, goroutines and files must
// stay level (edge cases 51, 53, 55, 56). Any length by -args -soak=10m.
func TestSoak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory and file descriptors are not measured here")
	}
	racetest.Without(t, "what it uses itself is not level")
	r := newSoakRig(t, max(*soakFor/20, time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), *soakFor+time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() { r.send(ctx, n) })
	}
	for _, work := range []func(ctx context.Context){r.outages, r.fetch, r.operate, r.readLong} {
		all.Go(func() { work(ctx) })
	}
	series := r.watch(ctx, max(*soakFor/40, 200*time.Millisecond))
	cancel()
	all.Wait()
	for _, name := range []string{"sender", "receiver"} {
		t.Logf("%s:\n%s", name, soakTable(series[name]))
		for _, g := range soakGauges() {
			if err := g.level(series[name]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	r.happened(t)
	for _, p := range []*child{r.sender, r.receiver} {
		if err := p.end(); err != nil {
			t.Errorf("stop: %v\n%s", err, p.tail())
		}
	}
}

// A trend that grows is found, and one that goes up and down is none.
func TestSoakSeesGrowth(t *testing.T) {
	t.Parallel()
	g := soakGauge{name: "x", show: 1, factor: 1.2, slack: 5}
	series := func(f func(i int) float64) (list []sample) {
		for i := range 40 {
			list = append(list, sample{values: map[string]float64{"x": f(i)}})
		}
		return list
	}
	for name, c := range map[string]struct {
		f     func(i int) float64
		level bool
	}{
		"still":             {func(int) float64 { return 50 }, true},
		"warms up":          {func(i int) float64 { return 50 * float64(min(i, 8)) }, true},
		"up and down":       {func(i int) float64 { return 50 + 40*float64(i%4) }, true},
		"one peak":          {func(i int) float64 { return 50 + 1000*float64(i/38) }, true},
		"grows":             {func(i int) float64 { return 50 + 2*float64(i) }, false},
		"grows in the end":  {func(i int) float64 { return 50 + 10*float64(max(i-25, 0)) }, false},
		"grows from little": {func(i int) float64 { return float64(i) }, false},
	} {
		if err := g.level(series(c.f)); (err == nil) != c.level {
			t.Errorf("%s: %v, want level %t", name, err, c.level)
		}
	}
	if g.level(series(func(int) float64 { return 0 })[:7]) == nil {
		t.Error("7 samples were enough")
	}
	if g.level([]sample{{}, {}, {}, {}, {}, {}, {}, {}}) == nil {
		t.Error("samples without the value were level")
	}
}

// sample is what was measured of one process at one time.
type sample struct {
	at     time.Duration
	values map[string]float64 // by metric
}

// Of the files, whose sizes are no metrics.
const fileBytes = "file_bytes"

// soakGauge is a number that must not grow.
type soakGauge struct {
	name, title   string
	show          float64 // divides what is shown
	factor, slack float64 // the median of the last quarter may be that much over that of the second
}

const mega = 1 << 20

func soakGauges() []soakGauge {
	// The first seconds of a process grow: what is allocated once, caches, idle
	// connections after the first outage, and a log that begins anew at 16 MiB.
	// In a short run that is all there is.
	warm, idle := 0.0, 0.0
	if *soakFor < time.Minute {
		warm, idle = 32*mega, 60
	}
	return []soakGauge{
		{"process_resident_memory_bytes", "RSS MiB", mega, 1.15, 6*mega + warm},
		{"process_open_fds", "fds", 1, 1.1, 12 + idle},
		{"go_goroutines", "goroutines", 1, 1.1, 20 + idle},
		{"holdfast_wal_bytes", "WAL MiB", mega, 1.1, 6*mega + warm},
		{fileBytes, "file MiB", mega, 1.15, 6*mega + warm},
	}
}

// soakShown are shown and may do as they like.
func soakShown() []soakGauge {
	return []soakGauge{{name: "rf_outbox_pending_count", title: "pending", show: 1}, {name: "rf_inbox_size", title: "ids", show: 1}}
}

// level compares the medians of the second and the last quarter: the first is
// for warming up, and a median does not see a short peak.
func (g soakGauge) level(series []sample) error {
	if len(series) < 8 {
		return fmt.Errorf("%s: %d samples are too few", g.name, len(series))
	}
	values := make([]float64, len(series))
	for i, s := range series {
		v, ok := s.values[g.name]
		if !ok {
			return fmt.Errorf("%s: was not measured", g.name)
		}
		values[i] = v
	}
	n := len(values)
	before, after := median(values[n/4:n/2]), median(values[3*n/4:])
	if after > before*g.factor+g.slack {
		return fmt.Errorf("%s grows: %.1f in the second quarter, %.1f in the last (%s)", g.name, before/g.show, after/g.show, g.title)
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func soakTable(series []sample) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := slices.Concat(soakGauges(), soakShown())
	line := func(first string, cell func(g soakGauge) string) {
		_, _ = fmt.Fprint(w, first, "\t")
		for _, g := range columns {
			_, _ = fmt.Fprint(w, cell(g), "\t")
		}
		_, _ = fmt.Fprintln(w)
	}
	line("after", func(g soakGauge) string { return g.title })
	for _, s := range series {
		line(s.at.Round(100*time.Millisecond).String(), func(g soakGauge) string {
			if g.show > 1 {
				return fmt.Sprintf("%.1f", s.values[g.name]/g.show)
			}
			return fmt.Sprintf("%.0f", s.values[g.name])
		})
	}
	_ = w.Flush()
	return b.String()
}

// watch samples both processes for as long as the test is to run, and on a
// slow machine until enough has happened.
func (r *soakRig) watch(ctx context.Context, every time.Duration) map[string][]sample {
	series := map[string][]sample{}
	began := time.Now()
	for pause(ctx, every); ctx.Err() == nil; pause(ctx, every) {
		for name, p := range map[string]*child{"sender": r.sender, "receiver": r.receiver} {
			values, err := scrape(p.url())
			if err != nil {
				r.t.Errorf("measure the %s: %v", name, err)
				return series
			}
			if s, err := os.Stat(filepath.Join(p.data, "holdfast.db")); err == nil {
				values[fileBytes] = float64(s.Size())
			}
			r.peakWAL.Store(max(r.peakWAL.Load(), int64(values["holdfast_wal_bytes"])))
			series[name] = append(series[name], sample{time.Since(began), values})
		}
		of := series["sender"]
		if time.Since(began) >= *soakFor && len(of) >= 10 && len(r.missing(of[len(of)-1].values)) == 0 {
			break
		}
	}
	return series
}

// scrape reads a node's metrics; those with labels are summed.
func scrape(url string) (map[string]float64, error) {
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", resp.Status)
	}
	values := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", line, err)
		}
		name, _, _ := strings.Cut(line[:i], "{")
		values[name] += v
	}
	return values, lines.Err()
}
