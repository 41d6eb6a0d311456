package admin

// For fuzz tests from outside.
var (
	ParseDuration  = parseDuration
	FormatDuration = formatDuration
)
