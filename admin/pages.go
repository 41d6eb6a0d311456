package admin

import (
	"cmp"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// usualPage is how many entries the stores put on a page, unless a query says otherwise.
const usualPage = 50

// pageOver fills a page from several lists, one after the other: the store reads each by itself. names are in
// order. A position is the store's position in a list, an @ and the list's name.
func pageOver[T any](names []string, position string, limit int, list func(name, after string, limit int) (some []T, next string, err error)) (all []T, next string, err error) {
	after, name, found := strings.Cut(position, "@")
	if position != "" && (!found || name == "") {
		return nil, "", api.Faulty(api.Fault{Field: "after", Value: api.Clip(position), Problem: "is not a position in this list; use next of the previous page unchanged"})
	}
	limit = cmp.Or(limit, usualPage)
	for _, n := range names {
		if n < name { // already listed, or new since then
			continue
		}
		if n != name {
			after = ""
		}
		if len(all) == limit {
			return all, "@" + n, nil
		}
		some, more, err := list(n, after, limit-len(all))
		if err != nil {
			return nil, "", err
		}
		all = append(all, some...)
		if more != "" {
			return all, more + "@" + n, nil
		}
	}
	return all, "", nil
}
