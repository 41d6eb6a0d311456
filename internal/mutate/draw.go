package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"hash/fnv"
	"slices"
	"strings"
)

// draw chooses, of the mutants that compile, those with the lowest hashes.
func (o options) draw(units []*unit) error {
	rank := map[*mutant]uint64{}
	owner := map[*mutant]*unit{}
	var all []*mutant
	for _, u := range units {
		for _, m := range u.found {
			rank[m], owner[m] = o.hash(m), u
		}
		all = append(all, u.found...)
	}
	slices.SortStableFunc(all, func(a, b *mutant) int { return cmp.Compare(rank[a], rank[b]) })
	for len(all) > 0 {
		n := min(o.number, len(all))
		for _, u := range units {
			u.drawn = nil
		}
		for _, m := range all[:n] {
			u := owner[m]
			u.drawn = append(u.drawn, m)
			m.number = len(u.drawn)
		}
		bad := map[*mutant]bool{}
		for _, u := range units {
			if err := u.misfits(bad); err != nil {
				return err
			}
		}
		if len(bad) == 0 {
			o.narrow(units)
			return nil
		}
		all = slices.DeleteFunc(all, func(m *mutant) bool { return bad[m] })
	}
	return errors.New("there is nothing to change")
}

// narrow keeps the mutants that -only selects.
func (o options) narrow(units []*unit) {
	for _, u := range units {
		u.drawn = slices.DeleteFunc(u.drawn, func(m *mutant) bool { return !o.only.MatchString(m.String()) })
		for i, m := range u.drawn {
			m.number = i + 1
		}
	}
}

func (o options) hash(m *mutant) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d\n%s\n%d", o.seed, m, m.occurrence)
	return mix(h.Sum64())
}

// mix spreads the last bytes over all bits (the finalizer of MurmurHash3), so that similar names
// are not drawn together.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// misfits adds the drawn mutants that do not compile.
func (u *unit) misfits(bad map[*mutant]bool) error {
	var trees []*ast.File
	spans := map[string][]span{}
	for _, f := range append(u.files, &source{name: switchFile}) {
		text := []byte(u.switches())
		if f.name != switchFile {
			text, spans[f.name] = u.render(f)
		}
		tree, err := parser.ParseFile(u.fset, f.name, text, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse what was changed: %w", err)
		}
		trees = append(trees, tree)
	}
	var unknown error
	_, _ = u.config(func(err error) {
		var fault types.Error
		if !errors.As(err, &fault) || strings.HasPrefix(fault.Msg, "\t") {
			return // a tab continues the previous fault
		}
		at := u.fset.Position(fault.Pos)
		if m := innermost(spans[at.Filename], at.Offset); m != nil {
			bad[m] = true
		} else {
			unknown = err
		}
	}).Check(u.path, u.fset, trees, nil)
	if len(bad) == 0 && unknown != nil {
		return fmt.Errorf("check what was changed: %w", unknown)
	}
	return nil
}

func innermost(spans []span, at int) (m *mutant) {
	size := 0
	for _, s := range spans {
		if s.start <= at && at < s.end && (m == nil || s.end-s.start < size) {
			m, size = s.mutant, s.end-s.start
		}
	}
	return m
}
