package metrics_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/metrics"
)

func counts() holdfast.Counts {
	return holdfast.Counts{
		Pending: 12, Claimed: 2, Parked: 3, Expired: 1, Inbox: 40, Kept: 4, Received: 50, Duplicates: 10,
		Lanes: map[string]holdfast.LaneCounts{"inventory": {Pending: 7, Parked: 3}, "billing": {Pending: 5, Expired: 1}},
	}
}

func lanes() []holdfast.LaneStatus {
	return []holdfast.LaneStatus{
		{Destination: "inventory", Up: true}, {Destination: "billing"}, {Destination: "mail", Up: true}, {Destination: "chat", Up: true, Held: true},
	}
}

func start(tb testing.TB) *metrics.Metrics {
	tb.Helper()
	m, err := metrics.New(metrics.Options{Counts: counts, Lanes: lanes, Oldest: func() map[string]time.Duration {
		return map[string]time.Duration{"billing": 90 * time.Second, "inventory": 0}
	}, Sources: []metrics.Source{parted}, Version: "1.2.3", Commit: "abc"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Shutdown(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return m
}

// scrape returns our series with their values, and the type of each metric.
func scrape(tb testing.TB, m *metrics.Metrics, accept string) (series, types map[string]string) {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), "GET", "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	if w.Code != 200 {
		tb.Fatalf("got %d %s", w.Code, w.Body)
	}
	series, types = map[string]string{}, map[string]string{}
	for s := bufio.NewScanner(w.Body); s.Scan(); {
		line := s.Text()
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(name, " ")
			types[name] = kind
		}
		if strings.HasPrefix(line, "rf_") || strings.HasPrefix(line, "holdfast_") {
			i := strings.LastIndexByte(line, ' ')
			series[line[:i]] = line[i+1:]
		}
	}
	return series, types
}

// parted has a gauge, a counter, a metric with a label and one that is not there for now.
var parted = metrics.Source{
	Metrics: []metrics.Metric{
		{Name: "holdfast_wal_bytes", Help: "Size of the log."},
		{Name: "holdfast_log_lines_lost", Help: "Lines.", Counter: true},
		{Name: "holdfast_part_lag", Help: "Lag.", Label: "part"},
		{Name: "holdfast_backup_size_bytes", Help: "Size of the last backup."},
	},
	Read: func(see func(name string, value int64, label ...string)) {
		see("holdfast_wal_bytes", 4096)
		see("holdfast_log_lines_lost", 17)
		see("holdfast_part_lag", 3, "a")
		see("holdfast_part_lag", 0, "b")
	},
}

func observe(m *metrics.Metrics) {
	attempt := func(to string, o holdfast.Outcome, s holdfast.State, retries int, took time.Duration) {
		m.ObserveAttempt(holdfast.AttemptInfo{Destination: to, Outcome: o, State: s, Retries: retries, Took: took})
	}
	attempt("inventory", holdfast.Succeeded, holdfast.Delivered, 0, 3*time.Millisecond)
	attempt("inventory", holdfast.Transient, holdfast.Pending, 0, 1500*time.Microsecond)
	attempt("inventory", holdfast.Succeeded, holdfast.Delivered, 2, 7*time.Millisecond)
	attempt("billing", holdfast.Permanent, holdfast.Parked, 5, time.Minute)
	m.ObserveExpired(3)
	m.ObserveReceived(holdfast.ReceivedInfo{Source: "a", Endpoint: "x", Took: 2 * time.Millisecond})
	m.ObserveReceived(holdfast.ReceivedInfo{Source: "a", Endpoint: "x", Duplicate: true, Took: time.Millisecond})
	m.ObserveReceived(holdfast.ReceivedInfo{Source: "b", Endpoint: "y", Err: errors.New("no"), Took: time.Millisecond})
}

func TestThePageHasTheNamesOfTheSpecification(t *testing.T) {
	t.Parallel()
	m := start(t)
	observe(m)
	wantTypes := map[string]string{
		"rf_outbox_pending_count": "gauge", "rf_outbox_send_duration_ms": "histogram", "rf_outbox_retry_count": "histogram",
		"rf_outbox_failed_count": "counter", "rf_outbox_expired_count": "counter", "rf_inbox_duplicate_count": "counter",
		"rf_inbox_process_duration_ms": "histogram", "rf_inbox_size": "gauge",
		"holdfast_outbox_pending": "gauge", "holdfast_outbox_parked": "gauge", "holdfast_outbox_expired": "gauge", "holdfast_outbox_claimed": "gauge",
		"holdfast_inbox_kept": "gauge", "holdfast_wal_bytes": "gauge", "holdfast_lane_up": "gauge", "holdfast_oldest_due_seconds": "gauge", "holdfast_lanes": "gauge", "holdfast_build_info": "gauge",
		"holdfast_log_lines_lost": "counter", "holdfast_part_lag": "gauge",
		"go_goroutines": "gauge",
	}
	want := map[string]string{
		`rf_outbox_pending_count`: "12",
		`rf_inbox_size`:           "40",
		`rf_outbox_send_duration_ms_count{destination="inventory",outcome="delivered"}`:         "2",
		`rf_outbox_send_duration_ms_sum{destination="inventory",outcome="delivered"}`:           "10",
		`rf_outbox_send_duration_ms_bucket{destination="inventory",outcome="delivered",le="5"}`: "1",
		`rf_outbox_send_duration_ms_sum{destination="inventory",outcome="transient"}`:           "1.5",
		`rf_outbox_send_duration_ms_sum{destination="billing",outcome="permanent"}`:             "60000",
		`rf_outbox_retry_count_count{destination="inventory"}`:                                  "2",
		`rf_outbox_retry_count_sum{destination="inventory"}`:                                    "2",
		`rf_outbox_retry_count_sum{destination="billing"}`:                                      "5",
		`rf_outbox_failed_count{destination="billing"}`:                                         "1",
		`rf_outbox_failed_count{destination="inventory"}`:                                       "0",

		`rf_outbox_expired_count`:                                "3",
		`rf_inbox_duplicate_count`:                               "1",
		`rf_inbox_process_duration_ms_sum{result="processed"}`:   "2",
		`rf_inbox_process_duration_ms_count{result="duplicate"}`: "1",
		`rf_inbox_process_duration_ms_count{result="failed"}`:    "1",
		`holdfast_outbox_pending{destination="inventory"}`:       "7",
		`holdfast_outbox_parked{destination="inventory"}`:        "3",
		`holdfast_outbox_expired{destination="billing"}`:         "1",
		`holdfast_outbox_claimed`:                                "2",
		`holdfast_inbox_kept`:                                    "4",
		`holdfast_oldest_due_seconds{destination="inventory"}`:   "0",
		`holdfast_oldest_due_seconds{destination="billing"}`:     "90", // F1-33
		`holdfast_lane_up{destination="inventory"}`:              "1",
		`holdfast_lane_up{destination="billing"}`:                "0",
		`holdfast_lanes{state="up"}`:                             "2",
		`holdfast_lanes{state="down"}`:                           "1",
		`holdfast_lanes{state="held"}`:                           "1",
		`holdfast_wal_bytes`:                                     "4096",
		`holdfast_log_lines_lost`:                                "17",
		`holdfast_part_lag{part="a"}`:                            "3",
		`holdfast_part_lag{part="b"}`:                            "0",
		`holdfast_backup_size_bytes`:                             "",
	}
	// A reader that prefers OpenMetrics gets the same names.
	for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"} {
		series, types := scrape(t, m, accept)
		got := map[string]string{}
		for name := range want {
			got[name] = series[name]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", accept, diff)
		}
		gotTypes := map[string]string{}
		for name := range wantTypes {
			gotTypes[name] = types[name]
		}
		if diff := cmp.Diff(wantTypes, gotTypes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", accept, diff)
		}
		for name := range types {
			if (strings.HasPrefix(name, "rf_") || strings.HasPrefix(name, "holdfast_")) && wantTypes[name] == "" {
				t.Errorf("%s: got %s, which nobody has asked for", accept, name)
			}
		}
		build := 0
		for name, value := range series {
			if strings.HasPrefix(name, "holdfast_build_info{") && strings.Contains(name, `version="1.2.3"`) && strings.Contains(name, `commit="abc"`) && value == "1" {
				build++
			}
		}
		if build != 1 {
			t.Errorf("%s: got %d series of holdfast_build_info, want 1", accept, build)
		}
	}
}

func TestCountersBeginAtZero(t *testing.T) {
	t.Parallel()
	series, _ := scrape(t, start(t), "")
	for _, name := range []string{"rf_outbox_expired_count", "rf_inbox_duplicate_count"} {
		if series[name] != "0" {
			t.Errorf("%s: got %q, want 0", name, series[name])
		}
	}
}

func TestTwoNodesInOneProcessCountApart(t *testing.T) {
	t.Parallel()
	a, b := start(t), start(t)
	a.ObserveExpired(1)
	if series, _ := scrape(t, b, ""); series["rf_outbox_expired_count"] != "0" {
		t.Errorf("got %s, want 0", series["rf_outbox_expired_count"])
	}
}

func TestObserversMayBeMany(t *testing.T) {
	t.Parallel()
	m := start(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 500 {
				m.ObserveAttempt(holdfast.AttemptInfo{Destination: fmt.Sprint("d", (i+n)%4), Outcome: holdfast.Succeeded, State: holdfast.Delivered})
			}
		})
	}
	all.Wait()
	series, _ := scrape(t, m, "")
	for i := range 4 {
		name := fmt.Sprintf(`rf_outbox_retry_count_count{destination="d%d"}`, i)
		if series[name] != "1000" {
			t.Errorf("%s: got %s, want 1000", name, series[name])
		}
	}
}

func TestCountsAreNeeded(t *testing.T) {
	t.Parallel()
	if _, err := metrics.New(metrics.Options{}); err == nil {
		t.Error("got no error")
	}
}

// The budget is 300 ns for an attempt.
func BenchmarkObserveAttempt(b *testing.B) {
	m := start(b)
	a := holdfast.AttemptInfo{Destination: "inventory", Outcome: holdfast.Succeeded, State: holdfast.Delivered, Took: 3 * time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.ObserveAttempt(a)
	}
}

func BenchmarkObserveReceived(b *testing.B) {
	m := start(b)
	r := holdfast.ReceivedInfo{Source: "a", Endpoint: "x", Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.ObserveReceived(r)
	}
}
