package filter_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// strangers are filters of every kind and operator that order does not meet; %[1]d makes each one
// different, as those of 100,000 subscribers are.
var strangers = []string{
	`{types: [order.created.%[1]d]}`,
	`{types: [order.x%[1]d.*]}`,
	`{topics: [t%[1]d]}`,
	`{attributes: {country: c%[1]d}}`,
	`{attributes: {country: be, "#actie": "a%[1]d"}}`,
	`{where: [{field: attributes.country, op: eq, value: c%[1]d}]}`,
	`{types: [order.created], where: [{field: data.name, op: eq, value: c%[1]d}]}`,
	`{where: [{field: attributes.country, op: neq, value: nl}, {field: data.x, op: neq, value: %[1]d}]}`,
	`{where: [{field: attributes.priority, op: gt, value: 1%[1]d0}]}`,
	`{types: [order.*], where: [{field: data.total, op: gte, value: 1%[1]d9223372036854775808}]}`,
	`{where: [{field: data.total, op: lt, value: %[1]d}]}`,
	`{where: [{field: time, op: lte, value: "2025-01-01T00:00:00.%09[1]dZ"}]}`,
	`{where: [{field: data.price, op: gte, value: %[1]d}, {field: data.price, op: lt, value: %[1]d.5}]}`,
	`{where: [{field: data.name, op: gt, value: a%[1]d}, {field: data.name, op: lt, value: a%[1]dz}]}`,
	`{where: [{field: subject, op: in, value: [s%[1]d, t%[1]d, u%[1]d]}]}`,
	`{types: [order.created], where: [{field: subject, op: nin, value: [s%[1]d, A-17, u%[1]d]}]}`,
	`{where: [{field: subject, op: prefix, value: A-17%[1]d}]}`,
	`{where: [{field: data.name, op: suffix, value: "%[1]dZoë"}]}`,
	`{where: [{field: type, op: contains, value: er.created%[1]d}]}`,
	`{types: [order.created], data: {coupon: "*", name: "c%[1]d"}}`,
	`{not: {where: [{field: source, op: contains, value: hop}]}, where: [{field: data.name, op: contains, value: "Zoë%[1]d"}]}`,
	`{where: [{field: data.f%[1]d, op: exists}]}`,
	`{where: [{field: data.total, op: exists, value: false}, {field: data.f%[1]d, op: neq, value: 1}]}`,
	`{any: [{types: [x%[1]d]}, {where: [{field: data.n, op: eq, value: %[1]d}]}]}`,
	`{all: [{types: [order.*]}, {where: [{field: subject, op: suffix, value: "%[1]dz"}]}]}`,
	`{not: {where: [{field: data.total, op: gt, value: -%[1]d}]}, types: [order.created]}`,
	`{not: {where: [{field: subject, op: prefix, value: A-}]}, where: [{field: data.q, op: nin, value: [%[1]d]}]}`,
	`{not: {any: [{types: [order.*]}, {where: [{field: data.x%[1]d, op: exists}]}]}}`,
}

// friends are ten filters that it meets.
var friends = []string{
	`{}`, `{types: [order.*], topics: [orders]}`, `{attributes: {country: nl, "#actie": create}}`,
	`{where: [{field: data.total, op: gte, value: 9223372036854775808}, {field: data.voucher, op: neq, value: 1}]}`,
	`{where: [{field: attributes.country, op: in, value: [nl, be]}]}`, `{where: [{field: subject, op: prefix, value: A-}]}`,
	`{where: [{field: data.name, op: suffix, value: oë}]}`, `{not: {where: [{field: data.voucher, op: exists}]}}`,
	`{any: [{types: [x]}, {where: [{field: data.price, op: lt, value: 1}]}]}`, `{where: [{field: source, op: nin, value: [/a, /b]}]}`,
}

// populate sets n subscriptions, ten of which order concerns.
func populate(tb testing.TB, x *filter.Index, n int) {
	tb.Helper()
	for i := range n {
		text := stranger(i)
		if i < len(friends) {
			text = friends[i]
		}
		if err := x.Set(fmt.Sprintf("subscription-%08d", i), []string{"orders", "returns"}, parse(tb, text)); err != nil {
			tb.Fatal(err)
		}
	}
}

func stranger(i int) string { return fmt.Sprintf(strangers[i%len(strangers)], i) }

// What one event costs, while subscriptions come and go: as much against 100,000 as against 10, of
// which 10 match.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("subscriptions=%d", n), func(b *testing.B) {
			var x filter.Index
			before := heap()
			populate(b, &x, n)
			size := float64(heap()-before) / float64(n)
			defer change(b, &x, n)()
			for b.Loop() {
				if got := x.Match(order()); len(got) != 10 {
					b.Fatalf("got %v, want 10", got)
				}
			}
			b.ReportMetric(size, "B/subscription")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// change adds and removes 1,000 subscriptions a second until its result is called.
func change(tb testing.TB, x *filter.Index, n int) (stop func()) {
	tb.Helper()
	var filters []filter.Filter
	for i := range strangers {
		filters = append(filters, parse(tb, stranger(n+i)))
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			id := fmt.Sprint("passing-", i%len(filters))
			if i/len(filters)%2 == 1 {
				x.Remove(id)
			} else if err := x.Set(id, []string{"*"}, filters[i%len(filters)]); err != nil {
				tb.Error(err)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}
