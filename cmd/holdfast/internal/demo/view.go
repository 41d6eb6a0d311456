package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Width is how many columns the table needs.
const Width = 76

const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

// plainEvery is the time between two lines if nothing can be drawn again.
const plainEvery = 5 * time.Second

// view shows the demo to a person: as a table that is drawn in place, or as a line for each event
// and every few seconds.
type view struct {
	out           io.Writer
	redraw, color bool
	length        time.Duration

	mu      sync.Mutex
	text    string        // of the present phase
	most    time.Duration // where the bar ends
	drawn   int           // lines on the screen that the next table replaces
	printed time.Time
}

// phase shows what happens from now on.
func (v *view) phase(text string, c Counts, elapsed time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.text = text
	v.show(c, elapsed, true)
}

// draw updates the numbers.
func (v *view) draw(c Counts, elapsed time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show(c, elapsed, false)
}

// interrupt stops the bar and begins a new table, because a terminal has written into the old one.
func (v *view) interrupt(elapsed time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drawn, v.most = 0, min(elapsed, v.most)
}

func (v *view) show(c Counts, elapsed time.Duration, event bool) {
	switch {
	case v.redraw:
		v.replace(v.table(c, elapsed))
	case event || time.Since(v.printed) >= plainEvery:
		v.printed = time.Now()
		text := v.text
		if c != (Counts{}) {
			text += ": " + line(c)
		}
		v.write(fmt.Sprintf("%4.0f s  %s\n", elapsed.Seconds(), text))
	}
}

// summary prints the last lines on the screen.
func (v *view) summary(c Counts, good bool, farewell string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.text = "done"
	if v.redraw {
		v.replace(v.table(c, v.most))
	} else {
		v.write(strings.Join(rows(c, func(s, _ string) string { return s }), "\n") + "\n")
	}
	if good {
		v.write("\n" + wrap(story(c)) + "\n")
	}
	v.write(farewell + "\n")
}

// replace draws over the last table.
func (v *view) replace(lines []string) {
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	for _, l := range lines {
		b.WriteString("\r\x1b[K" + l + "\n")
	}
	v.drawn = len(lines)
	v.write(b.String())
}

// write ignores errors: nothing can be done about a screen that is gone.
func (v *view) write(s string) { _, _ = io.WriteString(v.out, s) }

func (v *view) paint(s, color string) string {
	if !v.color {
		return s
	}
	return color + s + plain
}

func (v *view) table(c Counts, elapsed time.Duration) []string {
	elapsed = min(elapsed, v.most)
	lines := []string{
		fmt.Sprintf("%s  %.0f of %.0f s", bar(elapsed, v.length, 40), elapsed.Seconds(), v.length.Seconds()),
		v.paint(v.text, bold),
		"",
	}
	return append(lines, rows(c, v.paint)...)
}

// bar is a progress bar of ASCII characters.
func bar(done, all time.Duration, width int) string {
	n := width
	if all > 0 {
		n = int(float64(width) * float64(done) / float64(all))
	}
	n = min(max(n, 0), width)
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

// rows returns a row for each sort, and the counts of everything that happened.
func rows(c Counts, paint func(s, color string) string) []string {
	lines := []string{fmt.Sprintf("  %-13s %9s %10s %8s %8s %8s", "", "sent", "delivered", "waiting", "refused", "repeats")}
	orders := Tally{
		Sent: c.Sent, Delivered: c.Delivered, Waiting: c.Waiting, Duplicates: c.DuplicatesRefused,
		Lost: c.Lost, Doubled: c.Doubled, Foreign: c.Foreign,
	}
	for _, r := range append([]named{{"orders", &orders}}, c.tallies()...) {
		t := r.tally
		lines = append(lines, fmt.Sprintf("  %-13s %9d %10d %8d %8d %8d", r.name, t.Sent, t.Delivered, t.Waiting, t.Refused, t.Duplicates))
	}
	lines = append(lines, "", fmt.Sprintf("  nodes killed %d; acks of orders lost %d; repeats recognised %d", c.Kills, c.AcksLost, c.duplicates()))
	lostColor := green
	if c.Err() != nil {
		lostColor = red
	}
	lines = append(lines, paint(fmt.Sprintf("  %-13s %9d", "lost", c.lost()), lostColor))
	for _, f := range []struct {
		n          int
		name, note string
	}{
		{c.doubled(), "doubled", "took effect more than once"},
		{c.foreign(), "foreign", "took effect and were never sent"},
	} {
		if f.n > 0 {
			lines = append(lines, paint(fmt.Sprintf("  %-13s %9d  %s", f.name, f.n, f.note), red))
		}
	}
	return lines
}

// line returns the table in one line: delivered of sent.
func line(c Counts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "orders %d/%d", c.Delivered, c.Sent)
	for _, t := range c.tallies() {
		fmt.Fprintf(&b, ", %s %d/%d", t.name, t.tally.Delivered, t.tally.Sent)
	}
	if n := c.refused(); n > 0 {
		fmt.Fprintf(&b, ", refused %d", n)
	}
	fmt.Fprintf(&b, ", lost %d", c.lost())
	if n := c.doubled(); n > 0 {
		fmt.Fprintf(&b, ", doubled %d", n)
	}
	return b.String()
}

// story says what the demo has shown.
func story(c Counts) string {
	if c.sum(c.Sent, func(t *Tally) int { return t.Sent }) == 0 {
		return "It ended before a site had accepted anything."
	}
	text := fmt.Sprintf("The sites accepted %d orders, %d notifications, %d calls and %d writes", c.Sent, c.Notifications.Sent, c.Calls.Sent, c.Writes.Sent)
	switch c.Kills {
	case 0:
	case 1:
		text += ", while a node was killed without warning"
	default:
		text += fmt.Sprintf(", while nodes were killed %d times without warning", c.Kills)
	}
	text += ", and each one arrived"
	if n := c.refused(); n > 0 {
		text += fmt.Sprintf(" or was refused for good, and is kept with the reason: %d", n)
	}
	text += "."
	if n := c.duplicates(); n > 0 {
		text += fmt.Sprintf(" Answers were lost, so that %d came again, each with its id, by which it was recognised.", n)
	}
	return text + " All of this was counted outside of the nodes."
}

// wrap breaks a text into lines that fit.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > Width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
