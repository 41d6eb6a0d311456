package web

import "strings"

// outcomeOf returns the pill of how something ended, of a verdict, and of the state of a site or a subscription.
func outcomeOf(word string) pill {
	switch low := strings.ToLower(word); low {
	case "success", "intact", "active", "healthy":
		return pill{word, "check", "green"}
	case "refused", "failed", "broken":
		return pill{word, "stop", "red"}
	case "attempted", "retried", "offline", "unanchored":
		return pill{word, "warn", "amber"}
	case "submitted", "enqueued", "queued", "verifying", "never", "not verified yet":
		return pill{word, "clock", "blue"}
	case "retry":
		return pill{word, "retry", "blue"}
	case "discard":
		return pill{word, "trash", "grey"}
	case "disabled", "revoked":
		return pill{word, "stop", "grey"}
	case "missing":
		return pill{word, "stop", "red"}
	case "newest":
		return pill{word, "check", "green"}
	default:
		return pillOf(low)
	}
}

// deref returns what a pointer of an API's type points to, for templates.
func deref(n any) int64 {
	switch n := n.(type) {
	case *int64:
		return *n
	case *int:
		return int64(*n)
	}
	return 0
}
