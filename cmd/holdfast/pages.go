package main

import "errors"

// eachPage shows pages until there are no more, or only the first one without all.
// show prints the page that begins at a position, and returns where the next page
// begins; the zero value means that there is none. A next page that is the one just
// shown is an error: otherwise eachPage would never end.
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
			return errors.New("list: the node answers with the same page again")
		}
		after = next
	}
}
