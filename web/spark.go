package web

import (
	"fmt"
	"strings"
)

// spark is a small chart of one row of numbers, as the points of an SVG: a line and the area below it for each
// part between two gaps.
type spark struct {
	Parts []sparkPart
	Title string
}

type sparkPart struct{ Line, Area string }

// Size of a sparkline in the units of its SVG.
const sparkWidth, sparkHeight = 120, 28

// gap is a value that nobody knows.
const gap = -1

// sparkline draws numbers from left to right. Fewer than two places are no line.
func sparkline(title string, values []int64) *spark {
	if len(values) < 2 {
		return nil
	}
	highest, last := int64(0), int64(0)
	for _, v := range values {
		if highest = max(highest, v); v != gap {
			last = v
		}
	}
	s := &spark{Title: fmt.Sprintf("%s: last %s, at most %s", title, grouped(last), grouped(highest))}
	x := func(i int) float64 { return float64(i) * sparkWidth / float64(len(values)-1) }
	for from := 0; from < len(values); from++ {
		to := from
		var line strings.Builder
		for ; to < len(values) && values[to] != gap; to++ {
			y := sparkHeight - 2 - float64(values[to])*(sparkHeight-4)/float64(max(highest, 1))
			fmt.Fprintf(&line, "%.1f,%.1f ", x(to), y)
		}
		if to == from {
			continue
		}
		end := x(to - 1)
		if to == from+1 { // one value alone is a short line
			end += sparkWidth / float64(len(values))
			fmt.Fprintf(&line, "%.1f,%s ", end, strings.TrimSpace(line.String()[strings.Index(line.String(), ",")+1:]))
		}
		points := strings.TrimSuffix(line.String(), " ")
		s.Parts = append(s.Parts, sparkPart{points, fmt.Sprintf("%.1f,%d %s %.1f,%d", x(from), sparkHeight, points, end, sparkHeight)})
		from = to
	}
	return s
}
