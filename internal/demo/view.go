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

// plainEvery is the time between two lines where nothing can be drawn again.
const plainEvery = 5 * time.Second

// view is what a person sees: a table that is drawn in place, or a line for
// each event and every few seconds.
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

// phase tells what happens from now on.
func (v *view) phase(text string, c Counts, elapsed time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.text = text
	v.show(c, elapsed, true)
}

// draw brings the numbers up to date.
func (v *view) draw(c Counts, elapsed time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.show(c, elapsed, false)
}

// interrupt stops the bar and begins a new table: a terminal has written into
// the old one.
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
		v.write(fmt.Sprintf("%4.0f s  %s: %s\n", elapsed.Seconds(), v.text, line(c)))
	}
}

// summary is the last thing on the screen.
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

// write cannot do anything about a screen that is gone.
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

func rows(c Counts, paint func(s, color string) string) []string {
	lostColor := green
	if c.Err() != nil {
		lostColor = red
	}
	row := func(name string, n int, note string) string {
		return strings.TrimRight(fmt.Sprintf("  %-18s %8d  %s", name, n, note), " ")
	}
	lines := []string{
		row("sent", c.Sent, "accepted by the sender"),
		row("waiting", c.Waiting, "of these, without an ack so far"),
		row("delivered", c.Delivered, fmt.Sprintf("acknowledged; %d acks were lost on the way", c.AcksLost)),
		row("duplicates refused", c.DuplicatesRefused, "repeats that had no second effect"),
		paint(row("lost", c.Lost, ""), lostColor),
	}
	if c.Doubled > 0 {
		lines = append(lines, paint(row("doubled", c.Doubled, "took effect more than once"), red))
	}
	if c.Foreign > 0 {
		lines = append(lines, paint(row("foreign", c.Foreign, "took effect and were never sent"), red))
	}
	return lines
}

// line is the table in one line.
func line(c Counts) string {
	s := fmt.Sprintf("sent %d, waiting %d, delivered %d, duplicates refused %d, lost %d", c.Sent, c.Waiting, c.Delivered, c.DuplicatesRefused, c.Lost)
	if c.Doubled > 0 {
		s += fmt.Sprintf(", doubled %d", c.Doubled)
	}
	return s
}

// story says what was shown.
func story(c Counts) string {
	first := "%d messages were accepted, and each one arrived."
	if c.Kills > 0 {
		first = fmt.Sprintf("%%d messages were accepted while nodes were killed %d times without warning, and each one arrived: what a sender has accepted is on its disk.", c.Kills)
	}
	second := "No ack was lost this time"
	if c.AcksLost > 0 {
		second = fmt.Sprintf("%d acks were lost, so that messages came again, with the same id, and no repeat had an effect", c.AcksLost)
	}
	return fmt.Sprintf(first+" %s: %d effects, counted outside of both nodes.", c.Sent, second, c.Effects)
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
