package admin

// For fuzz tests from outside.
var (
	ParseDuration  = parseDuration
	FormatDuration = formatDuration
	WellFormed     = wellFormed
	NewSecret      = newSecret
)

// ProblemSorts lists the last parts of all problem types.
func ProblemSorts() (sorts []string) {
	for _, k := range kinds {
		sorts = append(sorts, k.slug)
	}
	return sorts
}
