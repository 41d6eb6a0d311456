package main

import "errors"

// eachPage shows pages until there are no more or, without all, the first one.
// show prints the page that begins after a place and returns where the next
// one begins; the zero value: nowhere. A next page that is the one just shown
// is an error: whoever answered would be asked for ever.
func eachPage[C comparable](a *app, after C, all, silent bool, show func(after C) (next C, err error)) error {
	var end C
	for {
		next, err := show(after)
		switch {
		case err != nil || next == end:
			return err
		case !all && silent:
			return nil
		case !all:
			a.note("there are more; continue with --after %v, or take all with --all\n", next)
			return nil
		case next == after:
			return errors.New("list: the next page is the same again; the node's answer cannot be followed")
		}
		after = next
	}
}
