package admin

import (
	"cmp"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/search"
)

// usualPage is how many entries the stores put on a page, unless a query says otherwise.
const usualPage = 50

// longestPage is how long a page goes on to another list. Each may take as long as a search does.
const longestPage = 10 * search.Time

// pageOver fills a page from several lists, one after the other: the store reads each by itself. A page that took
// long may be short, even empty. names are in order. A position is the store's position in a list, an @ and the list's name.
func pageOver[T any](names []string, position string, limit int, list func(name, after string, limit int) (some []T, next string, err error)) (all []T, next string, err error) {
	after, name, found := strings.Cut(position, "@")
	if position != "" && (!found || name == "") {
		return nil, "", api.Faulty(api.Fault{Field: "after", Value: api.Clip(position), Problem: "is not a position in this list; use next of the previous page unchanged"})
	}
	limit = cmp.Or(limit, usualPage)
	var began time.Time
	for _, n := range names {
		if n < name { // already listed, or new since then
			continue
		}
		if n != name {
			after = ""
		}
		if len(all) == limit || !began.IsZero() && time.Since(began) > longestPage {
			return all, "@" + n, nil
		}
		if began.IsZero() {
			began = time.Now()
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
