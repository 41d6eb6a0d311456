package web

import (
	"fmt"
	"strings"
)

// spark is a small chart of one row of numbers, as the points of an SVG.
type spark struct{ Line, Area, Title string }

// Size of a sparkline in the units of its SVG.
const sparkWidth, sparkHeight = 120, 28

// sparkline draws numbers from left to right. Fewer than two are no line.
func sparkline(title string, values []int64) *spark {
	if len(values) < 2 {
		return nil
	}
	highest := int64(1)
	for _, v := range values {
		highest = max(highest, v)
	}
	var line strings.Builder
	for i, v := range values {
		x := float64(i) * sparkWidth / float64(len(values)-1)
		y := sparkHeight - 2 - float64(max(v, 0))*(sparkHeight-4)/float64(highest)
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
	}
	points := strings.TrimSuffix(line.String(), " ")
	return &spark{
		Line: points, Area: fmt.Sprintf("0,%d %s %d,%d", sparkHeight, points, sparkWidth, sparkHeight),
		Title: fmt.Sprintf("%s: now %s, at most %s", title, grouped(values[len(values)-1]), grouped(highest)),
	}
}
