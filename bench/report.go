package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// row compares ours with one peer. A missing number is null.
type row struct {
	Measure string   `json:"measure"`
	Ours    *float64 `json:"ours"`
	Peer    string   `json:"peer"`
	// PeerValue is the peer's own number.
	PeerValue *float64 `json:"peer_value"`
	// Ratio is how many times better ours is than the peer.
	Ratio *float64 `json:"ratio"`
	// Bare is the bare loop's number, the ceiling.
	Bare *float64 `json:"bare"`
	// Share is the part of the ceiling that ours reaches; 1 is all of it.
	Share *float64 `json:"share"`
	Unit  string   `json:"unit"`
}

// report is the whole result.
type report struct {
	Rows     []row             `json:"rows"`
	Settings map[string]string `json:"settings"` // by contender
	Failures []string          `json:"failures,omitempty"`
	Machine  machine           `json:"machine"`
	Rounds   int               `json:"rounds"`
}

type machine struct {
	System string  `json:"system"`
	Cores  int     `json:"cores"`
	Go     string  `json:"go"`
	Syncs  float64 `json:"syncs_per_second"` // 4 KiB write and sync, one after the other
}

func newReport(rs []result, rounds int, syncs float64) report {
	p := report{
		Settings: map[string]string{},
		Rounds:   rounds,
		Machine:  machine{runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), runtime.Version(), syncs},
	}
	for _, r := range rs {
		for i, c := range r.contenders {
			if c.settings != "" {
				p.Settings[c.name] = c.settings
			}
			if r.failed[i] != nil {
				p.Failures = append(p.Failures, r.failed[i].Error())
			}
		}
		for _, col := range r.columns {
			p.Rows = append(p.Rows, r.rows(col)...)
		}
	}
	return p
}

// rows returns one row for each pair of ours and peer, at least one.
func (r result) rows(col column) []row {
	type side struct {
		name  string
		value *float64
	}
	var ours, peers []side
	var bare *float64
	for i, c := range r.contenders {
		v := pointer(median(r.rounds[i][col.key]))
		switch c.role {
		case roleOurs:
			ours = append(ours, side{c.name, v})
		case rolePeer:
			peers = append(peers, side{c.name, v})
		case roleBare: // the best of several is the ceiling
			if v != nil && (bare == nil || better(*v, *bare, col.lower)) {
				bare = v
			}
		}
	}
	if len(ours) == 0 {
		ours = []side{{}}
	}
	if len(peers) == 0 {
		peers = []side{{}}
	}
	var out []row
	for i, o := range ours {
		title := strings.TrimSpace(r.name + " " + col.title)
		if i > 0 {
			title += " (" + o.name + ")"
		}
		for _, p := range peers {
			out = append(out, row{
				Measure: title, Ours: o.value, Peer: p.name, PeerValue: p.value,
				Ratio: times(o.value, p.value, col), Bare: bare, Share: times(o.value, bare, col), Unit: col.unit,
			})
		}
	}
	return out
}

func better(a, b float64, lower bool) bool {
	return a != b && (a < b) == lower
}

// wakeUp is the time to wake a goroutine, in milliseconds. A delivery may overtake the answer by
// that much.
const wakeUp = 0.01

// times returns how many times better a is than b. A time shorter than a wake-up counts as a
// wake-up.
func times(a, b *float64, col column) *float64 {
	if a == nil || b == nil {
		return nil
	}
	x, y := *a, *b
	if col.lower {
		if col.unit == "ms" {
			x, y = max(x, wakeUp), max(y, wakeUp)
		}
		x, y = y, x
	}
	return pointer(x / y)
}

func pointer(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func (p report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

func (p report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "measure\tunit\tours\tpeer\tpeer's\tratio\tbare\tshare")
	last := ""
	for _, r := range p.Rows {
		name := r.Measure
		if name == last {
			name = ""
		}
		last = r.Measure
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, r.Unit, cellText(r.Ours, ""), dash(r.Peer),
			cellText(r.PeerValue, ""), cellText(r.Ratio, "x"), cellText(r.Bare, ""), cellText(r.Share, ""))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nratio: how many times better ours is than the peer; share: how much of the bare loop ours reaches.\n")
	fmt.Fprintf(w, "medians of %d rounds; %s, %d cores, %s, %s durable 4 KiB writes/s one by one.\n",
		p.Rounds, p.Machine.System, p.Machine.Cores, p.Machine.Go, number(p.Machine.Syncs))
	fmt.Fprintf(w, "all: %d B JSON payload; on files: %s.\n", payloadSize, pragmaText)
	for _, name := range sortedKeys(p.Settings) {
		fmt.Fprintf(w, "%s: %s.\n", name, p.Settings[name])
	}
	for _, f := range p.Failures {
		fmt.Fprintf(w, "FAILED %s\n", f)
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func cellText(x *float64, suffix string) string {
	if x == nil {
		return "-"
	}
	return number(*x) + suffix
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// number formats a number with three significant digits.
func number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 100_000:
		return fmt.Sprintf("%.0fk", x/1000)
	case a >= 100:
		return fmt.Sprintf("%.0f", x)
	case a >= 10:
		return fmt.Sprintf("%.1f", x)
	case a >= 0.1 || a == 0:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}
