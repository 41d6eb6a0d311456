package main

import (
	"fmt"
	"slices"
	"strings"
)

func report(all []*house) {
	slices.SortFunc(all, func(a, b *house) int { return b.code - a.code })
	var code, comments int
	var files, functions []int
	fmt.Printf("%-52s %7s %9s %6s  %s\n", "package", "code", "comments", "circle", "most methods")
	for _, h := range all {
		code, comments = code+h.code, comments+h.comments
		functions = append(functions, h.functions...)
		for _, n := range h.files {
			files = append(files, n)
		}
		fmt.Printf("%-52s %7d %9d %6d  %d %s\n", h.path, h.code, h.comments, len(h.circle), h.methods, h.of)
	}
	fmt.Printf("\ncode %d, comments %d (%.1f %%)\n", code, comments, 100*float64(comments)/float64(code+comments))
	fmt.Printf("files: %d, median %d, most %d lines of code\n", len(files), at(files, 50), at(files, 100))
	fmt.Printf("functions: %d, median %d, p99 %d, most %d lines\n", len(functions), at(functions, 50), at(functions, 99), at(functions, 100))
	fmt.Printf("the same lines in sqlite and postgres: %d\n", common(find(all, "sqlite"), find(all, "postgres")))
	for _, h := range all {
		if len(h.circle) > 15 {
			fmt.Printf("\na circle of %d in %s: %s\n", len(h.circle), h.path, strings.Join(h.circle, " "))
		}
	}
}

func at(list []int, percent int) int {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(len(list)*percent/100, len(list)-1)]
}

func find(all []*house, name string) *house {
	for _, h := range all {
		if strings.HasSuffix(h.path, "/holdfast/"+name) {
			return h
		}
	}
	return &house{}
}

// common counts the lines of code, of some length, that two packages have both.
func common(a, b *house) (n int) {
	for line, times := range a.lines {
		n += min(times, b.lines[line])
	}
	return n
}
