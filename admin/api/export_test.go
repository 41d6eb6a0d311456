package api

// Sorts lists the last parts of all problem types.
func Sorts() (list []string) {
	for _, s := range sorts {
		list = append(list, s.slug)
	}
	return list
}
